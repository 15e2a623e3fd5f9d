// The page of one run: its cost, its curves, its masks, its examples, its settings.

// Marks what differs: the words of the longest common part stay plain.
function differences(reference, hypothesis) {
  const [ours, theirs] = [hypothesis.split(/\s+/), reference.split(/\s+/)];
  const table = Array.from({ length: ours.length + 1 }, () => new Array(theirs.length + 1).fill(0));
  for (let a = ours.length - 1; a >= 0; a -= 1) {
    for (let b = theirs.length - 1; b >= 0; b -= 1) {
      table[a][b] = ours[a] === theirs[b] ? table[a + 1][b + 1] + 1 : Math.max(table[a + 1][b], table[a][b + 1]);
    }
  }
  const said = [[], []];
  let a = 0, b = 0;
  while (a < ours.length || b < theirs.length) {
    if (a < ours.length && b < theirs.length && ours[a] === theirs[b]) {
      said[0].push(ours[a], " ");
      said[1].push(theirs[b], " ");
      a += 1; b += 1;
    } else if (b >= theirs.length || (a < ours.length && table[a + 1][b] >= table[a][b + 1])) {
      said[0].push(element("ins", {}, ours[a]), " ");
      a += 1;
    } else {
      said[1].push(element("del", {}, theirs[b]), " ");
      b += 1;
    }
  }
  return said;
}

function facts(pairs) {
  return element("dl", {}, ...pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function runCurves(run) {
  const axis = { x: "step" };
  const last = Math.max(...(run.curve.seconds ?? [0]));
  const axes = { step: { label: "updates" }, seconds: { label: "training", ...time(last) }, flops: { label: "operations", format: operations } };
  const host = element("div", { class: "panels" });
  const panels = [["nll", "nll: validation, and training in grey"], run.select !== "nll" ? ["score", `validation ${run.select}`] : null, ["flips", "mask entries that changed since the last evaluation"]];
  const draws = panels.filter((panel) => panel && run.curve[panel[0]]).map(([key, title]) => {
    const box = element("div", { class: "plot" });
    host.append(element("div", {}, element("h4", {}, title), box));
    return () => chart(box, () => {
      const of = (xs, ys, name) => xs.map((value, place) => ({ x: value, y: ys[place], label: name, model: run.model, tip: [`${short(ys[place], 5)}`, `update ${run.curve.step[place] ?? ""}`] }))
        .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
      const series = [{ model: run.model, colour: COLOURS[0], line: true, shape: 0, size: 2.5, points: of(run.curve[axis.x], run.curve[key], title) }];
      if (key === "nll" && axis.x === "step" && run.training.step.length) {
        series.unshift({ model: run.model, colour: GREY, line: true, width: 1, points: run.training.step.map((value, place) => ({ x: value, y: run.training.nll[place],
          label: "training nll", model: run.model, tip: [short(run.training.nll[place], 5), `update ${value}`] })).filter((point) => Number.isFinite(point.y)) });
      }
      return { name: title, series, x: { ...axes[axis.x], zero: true }, y: { label: "", format: key === "flips" ? (value) => `${short(100 * value)} %` : short } };
    });
  });
  const show = () => { for (const draw of draws) draw(); };
  const choices = Object.keys(axes).filter((name) => run.curve[name]).map((name) => [name, name === "seconds" ? "time" : axes[name].label]);
  return [draws.length ? choice("Against", choices, "step", (value) => { axis.x = value; redraw(); }) : "", host, show];
}

function runMasks(run) {
  const { random, trained, kept, shared, shared_used: used } = run.parameters;
  if (({ ...DATA.config, ...run.config })["model.weights"] === "dense" || !random) return "";
  const flips = (run.curve.flips ?? []).filter((value) => value !== null);
  const percent = (share) => `${(100 * share).toFixed(2)} %`;
  return element("section", {}, element("h3", {}, "Masks"), facts([
    ["random weights", random.toLocaleString("en")], ["trained scores and weights", trained.toLocaleString("en")], ["kept by all masks together", kept.toLocaleString("en")],
    ["shared weights that some mask keeps", shared ? percent(used / shared) : ""], ["entries that changed at the end", flips.length ? percent(flips.at(-1)) : ""]]), ...masksByDepth(run));
}

// Each matrix: the share that each depth keeps, and how much two depths have in common, beside what independent masks have.
function masksByDepth(run) {
  if (!run.masks.length) return [element("p", { class: "caption" }, `${run.state === "finished" ? "An earlier version trained this run, which stored nothing" : "Until a run has finished, nothing is stored"} of the masks by depth.`)];
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const cells = (overlap) => (overlap.used ? [overlap.jaccard, overlap.independent_jaccard, overlap.used, overlap.independent_used].map(percent) : ["", "", "", ""]);
  const heads = ["matrix", "kept by depth", "two depths share", "if independent", "used by any depth", "if independent"];
  const row = ({ role, kept, overlap }) => element("tr", {}, element("th", { scope: "row" }, role),
    element("td", { class: "number" }, (new Set(kept.map(percent)).size > 1 ? kept : kept.slice(0, 1)).map(percent).join(", ")), ...cells(overlap).map((cell) => element("td", { class: "number" }, cell)));
  return [element("p", { class: "caption" }, "Two depths share: of the weights that either of two depths keeps, the part that both keep; the mean over all pairs."),
    element("div", { class: "table" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head, place) => element("th", { scope: "col", class: place ? "number" : null }, head)))),
      element("tbody", {}, ...run.masks.map(row))))];
}

function runExamples(run) {
  const sets = Object.entries(run.examples).filter(([, lines]) => lines.length);
  if (!sets.length) return "";
  return element("section", {}, element("h3", {}, "Examples"),
    element("p", { class: "caption" }, "Marked in the reference: words that the model does not have there. In the hypothesis: words that the reference does not have there."),
    ...sets.flatMap(([name, lines]) => [element("h4", {}, name), ...lines.map(([place, hypothesis]) => {
      const [source, reference] = DATA.lines[place];
      const [ours, theirs] = differences(reference, hypothesis);
      return element("dl", { class: "example" }, element("dt", {}, "source"), element("dd", {}, source), element("dt", {}, "reference"), element("dd", {}, ...theirs),
        element("dt", {}, "hypothesis"), element("dd", {}, ...ours));
    })]));
}

function showRun(place) {
  const run = DATA.runs[place], page = document.getElementById("run");
  const [choices, curves, draw] = runCurves(run);
  const differing = new Set(DATA.differing);
  const config = { ...DATA.config, ...run.config };
  const keys = Object.keys(config).sort((a, b) => differing.has(b) - differing.has(a) || (a < b ? -1 : 1));
  page.replaceChildren(
    element("p", {}, element("a", { href: "#runs" }, "← all runs"), place > 0 ? element("a", { href: `#run-${place - 1}` }, "previous") : "",
      place + 1 < DATA.runs.length ? element("a", { href: `#run-${place + 1}` }, "next") : ""),
    element("h2", {}, run.name),
    element("p", {}, element("button", { class: "model", "data-model": run.model, onclick: () => showModel(run.model) }, run.model), ` ${DATA.named[run.model].words}`),
    facts([["state", run.state], ...DATA.benches.filter(({ title }) => title in run.scores).map(({ title, digits }) => [title, run.scores[title].toFixed(digits)]), ["bytes", run.bytes ? megabytes(run.bytes) : ""],
      ["training", run.seconds === null ? "" : duration(run.seconds)], ["before that", run.begun], ["operations", run.flops ? operations(run.flops) : ""],
      ["best update", run.best === null ? "" : `${run.best} of ${run.steps}, by ${run.select}`], ["update", run.state !== "finished" && run.update ? `${run.update}${run.steps ? ` of ${run.steps}` : ""}` : ""], ["device", run.device]]),
    choices, curves, runMasks(run), runExamples(run),
    element("details", {}, element("summary", {}, "Settings and command"), facts([["folder", run.folder], ["commit", run.commit], ["needs", run.needs]]), element("p", {}, element("code", {}, run.command)),
      element("div", { class: "table" }, element("table", {}, element("tbody", {}, ...keys.map((key) => element("tr", { class: differing.has(key) ? "differs" : null },
        element("th", { scope: "row" }, key), element("td", {}, JSON.stringify(config[key]))))))))); 
  document.querySelector("main").hidden = true;
  page.hidden = false;
  draw();
  scrollTo(0, 0);
}
