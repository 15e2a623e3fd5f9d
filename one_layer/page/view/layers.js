/** One random matrix, and the mask of each depth over it: pictures that move and zoom together. */
import { byId, el, percent, Value } from "./dom.js";
import { roleName } from "./names.js";
import { cellAt, drawMatrix } from "./picture.js";

const CLOSE = 24; // cells across at the beginning
const DRAWING = 1600; // milliseconds
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Follows `role`, the chosen matrix, and `seed`, which may be another than the model's. `twins`: the other models of the page, with their names. */
export function showLayers(model, role, seed, twins) {
  const frame = new Value({ top: 0, left: 0, size: CLOSE }), cell = new Value(null);
  const panels = byId("panels"), said = byId("weight");
  let [matrix, panes, shown] = [null, [], 0];

  const draw = () => {
    panes.forEach(({ canvas, mask, values }, place) => {
      drawMatrix(canvas, { ...matrix, mask, values }, frame.now, { cell: cell.now, shown: place ? undefined : shown });
    });
  };
  const animate = () => {
    const [start, rows] = [performance.now(), frame.now.size];
    const step = (now) => {
      const share = still() ? 1 : Math.min(1, (now - start) / DRAWING);
      shown = share < 1 ? frame.now.top + Math.ceil(share * rows) : Infinity;
      draw();
      if (share < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  };
  const load = async () => {
    const [chosen, seeded] = [role.now, seed.now], own = model.matrix(chosen);
    const drawn = own.own ? own.depths : [0];
    const weights = await Promise.all(drawn.map((depth) => model.weights(chosen, seeded, depth)));
    const masks = await Promise.all(own.depths.map((depth) => model.mask(chosen, depth)));
    const beside = seeded === model.seed ? await twinsOf(model, twins(), chosen) : [];
    if (chosen !== role.now || seeded !== seed.now) return;
    matrix = { shape: own.shape, signs: own.signs, largest: weights[0].reduce((most, each) => Math.max(most, Math.abs(each)), 1e-30) };
    const first = { mask: null, values: weights[0], title: `Drawn from seed ${seeded}${own.own ? ", depth 1" : ""}` };
    const title = (place) => (own.depths.length > 1 ? `Depth ${place + 1}` : "Under its mask");
    const pictures = masks.map((mask, place) => ({ mask, values: weights[place] ?? weights[0], title: title(place) }));
    const others = beside.flatMap(({ name, masks: theirs }) => theirs.map((mask, place) => ({ mask, values: weights[place] ?? weights[0], title: `${name}, depth ${place + 1}`, twin: true })));
    byId("twins").hidden = !beside.length;
    byId("twins").textContent = beside.map(({ name, agree }) => `${name} has the same random matrix, drawn once for both. Its masks agree with these in ${percent(agree)} of their bits; masks by chance would in ${percent(own.chance ** 2 + (1 - own.chance) ** 2)}.`).join(" ");
    panes = [first, ...pictures, ...others].map((each, place) => pane(each, place, own));
    panels.replaceChildren(...panes.map(({ figure }) => figure));
    const size = Math.min(frame.now.size, Math.max(...own.shape));
    cell.set(null);
    frame.set({ top: 0, left: 0, size });
    animate();
  };
  const pane = ({ mask, values, title, twin = false }, place, own) => {
    const what = `${title}, ${roleName(role.now)}: ${own.shape[0]} rows and ${own.shape[1]} columns`;
    const canvas = el("canvas", { role: place ? "img" : "application", tabindex: place ? null : 0, "aria-label": place ? what : `${what}. Arrow keys move over the weights, plus and minus zoom.`, "aria-describedby": place ? null : "weight" });
    follow(canvas);
    const kept = mask ? `${own.signs ? "turns the signs of" : "keeps"} ${percent(share(mask, own.shape))} of it` : "never trained";
    return { canvas, mask, values, twin, figure: el("figure", {}, canvas, el("figcaption", {}, el("b", {}, title), kept)) };
  };
  // Of a table with many rows, at most a square and its double are seen at once: a thin line would show nothing.
  const widest = () => Math.min(Math.max(...matrix.shape), 2 * Math.min(...matrix.shape));
  const zoom = (factor) => {
    if (!matrix) return;
    const { top, left, size } = frame.now;
    const next = Math.max(8, Math.min(widest(), Math.round(size * factor)));
    const at = cell.now ?? { row: top + size / 2, column: left + size / 2 };
    place(Math.round(at.row - ((at.row - top) * next) / size), Math.round(at.column - ((at.column - left) * next) / size), next);
  };
  const place = (top, left, size = frame.now.size) => {
    const [rows, columns] = matrix.shape, into = (value, most) => Math.max(0, Math.min(value, Math.max(0, most - size)));
    frame.set({ top: into(top, rows), left: into(left, columns), size });
    draw();
  };
  const look = (chosen) => {
    cell.set(chosen);
    draw();
    if (chosen) said.textContent = describe(chosen, matrix, panes.filter(({ twin }) => !twin));
  };
  const step = (rows, columns) => {
    const { row, column } = cell.now ?? { row: frame.now.top, column: frame.now.left };
    const next = { row: Math.max(0, Math.min(row + rows, matrix.shape[0] - 1)), column: Math.max(0, Math.min(column + columns, matrix.shape[1] - 1)) };
    const { top, left, size } = frame.now;
    place(Math.min(next.row, Math.max(top, next.row - size + 1)), Math.min(next.column, Math.max(left, next.column - size + 1)));
    look(next);
  };
  const follow = (canvas) => {
    let grip = null;
    canvas.onpointermove = (event) => {
      if (grip) {
        const scale = frame.now.size / canvas.clientWidth;
        place(grip.top - Math.round((event.clientY - grip.y) * scale), grip.left - Math.round((event.clientX - grip.x) * scale));
      } else look(cellAt(canvas, event, matrix.shape, frame.now));
    };
    canvas.onpointerdown = (event) => {
      look(cellAt(canvas, event, matrix.shape, frame.now));
      if (event.pointerType !== "mouse") return;
      grip = { x: event.clientX, y: event.clientY, ...frame.now };
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointerup = canvas.onpointercancel = () => (grip = null);
    canvas.onwheel = (event) => {
      if (!event.ctrlKey) return; // else the wheel scrolls the page
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8);
    };
    canvas.onkeydown = (event) => {
      const action = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (action) step(...action);
      else if (event.key === "+" || event.key === "=") zoom(0.5);
      else if (event.key === "-") zoom(2);
      else return;
      event.preventDefault();
    };
  };

  byId("nearer").onclick = () => zoom(0.5);
  byId("farther").onclick = () => zoom(2);
  byId("whole").onclick = () => matrix && place(0, 0, widest());
  byId("again").onclick = animate;
  new ResizeObserver(draw).observe(panels);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((each) => each.isIntersecting) || !matrix) return;
    observer.disconnect();
    animate();
  }).observe(panels);
  role.watch(load);
  seed.watch(load);
}

/** Of the other models of the page, those that have the same random matrix, with their masks over it. */
async function twinsOf(model, twins, role) {
  const found = await Promise.all(twins.map(async ({ name, model: other }) => ({ name, ...(other.matrix(role) ? await model.beside(other, role) : null) })));
  return found.filter(({ masks }) => masks);
}

function share(mask, [rows, columns]) {
  let kept = 0;
  for (let byte of mask) for (; byte; byte &= byte - 1) kept++;
  return kept / (rows * columns);
}

/** What the page says of one weight. */
function describe({ row, column }, { shape, signs }, panes) {
  const place = row * shape[1] + column, values = [...new Set(panes.map((pane) => pane.values))].map((each) => number(each[place]));
  const depths = panes.flatMap(({ mask }, depth) => (mask && (mask[place >> 3] >> (place & 7)) & 1 ? [depth] : []));
  const said = values.length > 1 ? `the weights are ${values.join(", ")}` : `the weight is ${values[0]}`;
  return `Row ${row + 1}, column ${column + 1}: ${said}. ${using(depths, panes.length - 1, signs ? "Its sign is turned" : "Used")}.`;
}

const number = (value) => value.toFixed(4).replace("-", "−");

function using(depths, most, verb) {
  if (most > 1) return depths.length ? `${verb} at ${depths.length > 1 ? "depths" : "depth"} ${depths.join(" and ")}` : `${verb} at no depth`;
  return `${verb} by the mask: ${depths.length ? "yes" : "no"}`;
}
