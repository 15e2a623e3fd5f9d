// One drawing: series of points with error bars and lines, levels, the values under the pointer, and a legend beside it.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const GREY = "#8a9097";
const DASHES = ["5 4", "2 3", "10 3 2 3", "14 4"]; // of levels
let clips = 0;
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0 ${-1.3 * r}L${1.2 * r} ${r}H${-1.2 * r}z`,
  (r) => `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0z`,
  (r) => `M0 ${1.3 * r}L${1.2 * r} ${-r}H${-1.2 * r}z`,
  (r) => `M${-1.4 * r} 0H${1.4 * r}M0 ${-1.4 * r}V${1.4 * r}`,
];

// Draws `make(width)` into the host, and again when its width or the reader's choice changes.
function chart(host, make) {
  const draw = () => {
    const width = host.clientWidth;
    if (width > 40) host.replaceChildren(...drawing(make(width), width));
  };
  drawings.add(draw);
  let last = 0;
  const resized = () => { if (host.clientWidth !== last) { last = host.clientWidth; draw(); emphasise(); } };
  new ResizeObserver(() => requestAnimationFrame(resized)).observe(host);
  draw();
  return draw;
}

// The drawing, and below it the names that have no room in it.
function drawing(spec, width) {
  const height = spec.height ?? Math.round(Math.min(420, Math.max(230, width * 0.6)));
  const left = 52, right = 24, top = 10, bottom = 40;
  const series = spec.series.filter((each) => !chosen.hidden.has(each.model));
  const levels = (spec.levels ?? []).filter((each) => !chosen.hidden.has(each.model));
  const points = series.flatMap((each) => each.points.map((point) => ({ ...point, series: each })));
  const bars = points.flatMap((point) => [point.y - (point.deviation ?? 0), point.y + (point.deviation ?? 0)]);
  const ys = spec.y.all ?? [...bars, ...levels.map((each) => each.y)];
  const x = scale(spec.x.all ?? points.map((point) => point.x), left, width - right, spec.x);
  const y = scale(ys, height - bottom, top, { room: 0.08, ...spec.y });
  const seen = points.filter((point) => x.shows(point.x) && y.shows(point.y));
  const clip = `clip-${(clips += 1)}`;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spec.name });
  svg.append(grid(spec, x, y, { left, right: width - right, top, bottom: height - bottom }));
  svg.append(drawn("clipPath", { id: clip }, drawn("rect", { x: left - 6, y: top - 6, width: width - left - right + 12, height: height - top - bottom + 12 })));
  svg.append(drawn("g", { "clip-path": `url(#${clip})` }, ...levels.map((each) => level(each, x, y, left, width - right)), ...series.map((each) => line(each, x, y))));
  const marks = seen.map((point) => [x(point.x), y(point.y)]);
  const named = [...levels.map((each) => ({ ...each, at: [left + 4, y(each.y)], level: true })),
    ...seen.map((point) => ({ ...point, at: [x(point.x), y(point.y)] }))].filter((each) => each.named);
  const [texts, key] = names(named, marks, { levels: levels.map((each) => y(each.y)), left, right: width - 4, top, bottom: height - bottom });
  svg.append(texts);
  listen(svg, seen, levels, x, y, width);
  return [svg, ...key];
}

function grid(spec, x, y, box) {
  const group = drawn("g", { class: "axes" });
  for (const tick of y.ticks(5)) {
    group.append(drawn("line", { x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    group.append(drawn("text", { x: box.left - 6, y: y(tick) + 4, "text-anchor": "end" }, (spec.y.format ?? short)(tick)));
  }
  for (const tick of x.ticks((box.right - box.left) / 90)) {
    group.append(drawn("line", { x1: x(tick), x2: x(tick), y1: box.bottom, y2: box.bottom + 4 }));
    group.append(drawn("text", { x: x(tick), y: box.bottom + 17, "text-anchor": "middle" }, (spec.x.format ?? short)(tick)));
  }
  group.append(drawn("text", { x: box.right, y: box.bottom + 34, "text-anchor": "end" }, spec.x.label));
  group.append(drawn("text", { transform: `translate(13 ${box.top}) rotate(-90)`, "text-anchor": "end" }, spec.y.label));
  return group;
}

function line(each, x, y) {
  const seen = each.points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y) && (!x.log || point.x > 0) && (!y.log || point.y > 0));
  const group = drawn("g", { class: "series", "data-model": each.model, style: `color: ${each.colour}` });
  if (each.line && seen.length > 1) {
    group.append(drawn("polyline", { class: "line", points: seen.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(" "),
      "stroke-dasharray": each.dash, "stroke-width": each.width ?? 1.5 }));
  }
  for (const point of seen) {
    const mark = drawn("g", { transform: `translate(${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)})`, "data-model": point.model, class: "mark" });
    if (point.deviation) {
      const [up, down] = [y(point.y + point.deviation) - y(point.y), y(point.y - point.deviation) - y(point.y)];
      mark.append(drawn("path", { class: "bar", d: `M-3 ${up}H3M0 ${up}V${down}M-3 ${down}H3` }));
    }
    if (each.shape !== undefined || seen.length === 1) {
      mark.append(drawn("path", { class: point.hollow ? "hollow" : "full", d: SHAPES[(each.shape ?? 0) % SHAPES.length](each.size ?? 4) }));
    }
    if (mark.firstChild) group.append(mark);
  }
  return group;
}

function level(each, x, y, left, right) {
  const group = drawn("g", { class: "series level", "data-model": each.model });
  if (each.deviation) {
    const [up, down] = [y(each.y + each.deviation), y(each.y - each.deviation)];
    group.append(drawn("rect", { x: left, width: right - left, y: up, height: down - up, class: "band" }));
  }
  group.append(drawn("line", { x1: left, x2: right, y1: y(each.y), y2: y(each.y), "stroke-dasharray": each.dash ?? DASHES[0] }));
  return group;
}

// Names beside the points that matter, where they hide no mark and no other name. Others get a number there, and their name below.
function names(items, marks, box) {
  const group = drawn("g", { class: "names" }), taken = [], below = [];
  const put = (item, text, mayHide) => {
    const place = placed(item, textWidth(text), marks, taken, box, mayHide);
    if (!place) return false;
    taken.push(place);
    group.append(drawn("text", { x: place.left, y: place.base, "data-model": item.model }, text));
    return true;
  };
  for (const item of items.filter((each) => !put(each, each.label, false))) {
    below.push(item);
    const number = String(below.length);
    if (!put(item, number, false)) put(item, number, true);
  }
  const key = below.map((item) => element("li", { "data-model": item.model }, item.model ? element("button", { class: "model", "data-model": item.model }, item.label) : item.label));
  return [group, key.length ? [element("ol", { class: "key" }, ...key)] : []];
}

// The first free place of a text around its point, or along its level: above, right, left, below, and at the corners.
function placed({ at: [px, py], level }, size, marks, taken, box, mayHide) {
  const along = [box.left + 4, box.right - size - 4, (box.left + box.right - size) / 2].flatMap((left) => [[left, py - 5], [left, py + 14]]);
  const around = [[px - size / 2, py - 9], [px + 8, py + 4], [px - size - 8, py + 4], [px - size / 2, py + 19],
    [px + 4, py - 9], [px - size - 4, py - 9], [px + 4, py + 19], [px - size - 4, py + 19]];
  const covers = (left, base, [x, y]) => x > left - 5 && x < left + size + 5 && y > base - 15 && y < base + 7;
  const free = ([left, base]) => left >= box.left && left + size <= box.right && base > box.top + 8 && base < box.bottom - 2 &&
    taken.every((other) => left + size + 4 < other.left || left > other.left + other.size + 4 || base < other.base - 13 || base - 13 > other.base) &&
    (mayHide || !(marks.some((mark) => covers(left, base, mark)) || box.levels.some((line) => line > base - 11 && line < base + 2)));
  const found = (level ? along : around).find(free);
  return found ? { left: found[0], base: found[1], size } : null;
}

const pen = document.createElement("canvas").getContext("2d");

// The width of a text in a drawing, whose letters page.css makes 12 pixels high.
function textWidth(text) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// The values of the nearest point, under the mouse or the finger. A click makes its model stand out.
function listen(svg, points, levels, x, y, width) {
  const tip = document.getElementById("tip");
  const ring = drawn("circle", { r: 8, class: "ring", visibility: "hidden" });
  svg.append(ring);
  let near = null;
  const find = (event) => {
    const box = svg.getBoundingClientRect();
    const [px, py] = [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * width / box.width];
    const distances = [
      ...points.map((point) => [Math.hypot(x(point.x) - px, y(point.y) - py), point]),
      ...levels.map((each) => [6 + Math.abs(y(each.y) - py), { ...each, x: null }]),
    ].filter(([distance]) => distance < 36).sort((a, b) => a[0] - b[0]);
    near = distances.length ? distances[0][1] : null;
    ring.setAttribute("visibility", near && near.x !== null ? "visible" : "hidden");
    tip.hidden = !near;
    if (!near) return;
    if (near.x !== null) { ring.setAttribute("cx", x(near.x)); ring.setAttribute("cy", y(near.y)); }
    tip.replaceChildren(element("strong", {}, near.label), ...near.tip.map((text) => element("div", {}, text)));
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 6))}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  };
  const leave = () => { tip.hidden = true; ring.setAttribute("visibility", "hidden"); };
  filled(svg, { onpointermove: find, onpointerdown: find, onpointerleave: leave,
    onclick: () => { if (near) { if (near.go !== undefined && event.detail > 1) location.hash = `#run-${near.go}`; else choose(near.model); } } }, []);
}

// A mark in its colour, for a legend.
function sample(look) {
  return drawn("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, style: `color: ${COLOURS[look % COLOURS.length]}` },
    drawn("path", { class: "full", d: SHAPES[look % SHAPES.length](4) }));
}

// A level with its dashes, for a legend.
function dashes(dash) {
  return drawn("svg", { viewBox: "0 0 34 14", width: 34, height: 14, class: "level" }, drawn("line", { x1: 0, x2: 34, y1: 7, y2: 7, "stroke-dasharray": dash }));
}

// Chips that make a model stand out, and hide it; never higher than a part of the drawing.
function legend(items) {
  return element("ul", { class: "legend" }, ...items.map((item) => element("li", { "data-model": item.model, class: chosen.hidden.has(item.model) ? "off" : null },
    element("button", { type: "button", onclick: () => choose(item.model), title: "highlight" },
      drawn("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, style: `color: ${item.colour}` }, drawn("path", { class: "full", d: SHAPES[0](4) })), item.name),
    element("button", { type: "button", class: "eye", "aria-label": `hide ${item.name}`, title: "hide or show", onclick: (click) => {
      click.currentTarget.parentNode.classList.toggle("off"); hide(item.model); } }, "×"))));
}
