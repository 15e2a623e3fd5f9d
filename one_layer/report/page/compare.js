// Two runs side by side: the reader ticks two rows of the table of runs.

// How well a hypothesis fits its reference, in [0, 1]: twice the words of the longest common part, by the words of both.
function fit(reference, hypothesis) {
  const [ours, theirs] = differences(reference, hypothesis);
  const common = ours.filter((part) => typeof part === "string" && part.trim()).length;
  return 2 * common / ((ours.length + theirs.length) / 2 || 1);
}

function compareTable(title, heads, rows, numbers = false) {
  if (!rows.length) return element("p", {}, `${title}: none.`);
  if (numbers) {
    for (const place of [1, 2, 3]) aligned(rows.map((row) => row[place])).forEach((text, number) => { rows[number][place] = text; });
  }
  const kind = (place) => ({ class: numbers && place >= 0 && place < 3 ? "number" : null });
  return element("div", {}, element("h4", {}, title), element("div", { class: "table" }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head, place) => element("th", { scope: "col", ...kind(place - 1) }, head)))),
    element("tbody", {}, ...rows.map(([name, ...cells]) => element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell, place) => element("td", kind(place), cell))))))));
}

function differingKeys(first, second) {
  const shown = (run, key) => (key in run.config ? JSON.stringify(run.config[key]) : "-");
  return [...new Set([...Object.keys(first.config), ...Object.keys(second.config)])].sort()
    .map((key) => [key, shown(first, key), shown(second, key)]).filter(([, one, other]) => one !== other);
}

// A row of two values, their difference, and which run is better.
function against(name, one, other, less, digits) {
  const gain = Number((other.toFixed(digits) - one.toFixed(digits)).toFixed(digits)); // of what is shown
  const better = gain === 0 ? "" : (gain < 0) === less ? "second" : "first";
  return [name, one.toFixed(digits), other.toFixed(digits), `${gain > 0 ? "+" : ""}${gain.toFixed(digits)}`, better];
}

function comparedScores(first, second, places) {
  const rows = DATA.benches.filter(({ title }) => [first, second].every((run) => Number.isFinite(run.scores[title])))
    .map(({ title, less, digits }) => against(title, first.scores[title], second.scores[title], less, digits));
  const best = (run) => Math.min(...(run.curve.nll ?? []).filter((value) => value !== null));
  const alike = DATA.convergence.some(({ runs }) => places.every((place) => runs.includes(place)));
  if (alike && [first, second].every((run) => Number.isFinite(best(run)))) rows.push(against("nll on valid, best", best(first), best(second), true, 4));
  for (const [name, key, unit, digits] of [["MB", "bytes", 1e6, 3], ["minutes of training", "seconds", 60, 1], ["operations, T", "flops", 1e12, 1]]) {
    if ([first, second].some((run) => run[key])) rows.push([name, ...[first, second].map((run) => (run[key] ? (run[key] / unit).toFixed(digits) : "-")), "", ""]);
  }
  return rows;
}

// The lines that the page has of both runs, those with the largest change first.
function comparedLines(first, second) {
  const found = Object.entries(first.examples).flatMap(([test, lines]) => {
    const others = new Map(second.examples[test] ?? []);
    return lines.filter(([place]) => others.has(place)).map(([place, one]) => {
      const [source, reference] = DATA.lines[place], other = others.get(place);
      return { test, source, reference, one, other, gain: fit(reference, other) - fit(reference, one) };
    });
  });
  return found.sort((a, b) => Math.abs(b.gain) - Math.abs(a.gain));
}

function lineShown({ test, source, reference, one, other, gain }) {
  return element("dl", { class: "example" }, element("dt", {}, element("b", {}, gain > 0 ? "second" : "first")), element("dd", {}, `is better (${test})`), element("dt", {}, "source"), element("dd", {}, source),
    element("dt", {}, "reference"), element("dd", {}, reference), element("dt", {}, "first"), element("dd", {}, ...differences(reference, one)[0]),
    element("dt", {}, "second"), element("dd", {}, ...differences(reference, other)[0]));
}

// What a terminal says of them besides. A collection has no hypotheses.
function inTerminal(first, second) {
  const told = [first, second].some(({ address }) => address.includes(".jsonl.zst")) ? "What both needed, and the scores of their files in fewer bits; all lines, and whether chance explains the difference, only of folders that have their hypotheses: "
    : "What both needed, the scores of their files in fewer bits, and where their folders have the hypotheses all lines, and whether chance explains the difference: ";
  return element("p", { class: "caption" }, told, element("code", {}, `python -m one_layer compare '${first.address}' '${second.address}'`));
}

function showTwo(host, places) {
  const [first, second] = places.map((place) => DATA.runs[place]);
  const lines = comparedLines(first, second), changed = lines.filter(({ gain }) => gain);
  const better = changed.filter(({ gain }) => gain > 0).length, worse = changed.length - better;
  host.replaceChildren(element("form", { method: "dialog" }, element("button", { "aria-label": "Close" }, "×")), element("h2", {}, "Two runs"), facts([["first", first.name], ["second", second.name]]),
    compareTable("Scores and cost", ["what", "first", "second", "difference", "better"], comparedScores(first, second, places), true),
    element("p", { class: "caption" }, "Scores of the best checkpoint of each. MB: the file, or the weights counted where there is none."),
    element("h4", {}, "Lines"),
    element("p", {}, lines.length ? `Lines that this page has of both: ${lines.length}. The second run has ${better} better, ${worse} worse, and ${lines.length - changed.length} as good.` : "This page has no line of both runs."),
    element("p", { class: "caption" }, "By the words that a hypothesis shares with its reference in the same order."),
    ...changed.map(lineShown),
    compareTable("Keys that differ", ["key", "first", "second"], differingKeys(first, second)), inTerminal(first, second));
  host.showModal();
  host.scrollTop = 0;
}

// A box in each row of the table of runs. The second tick opens a dialog, and both go when it closes.
function pickTwo(block) {
  if (DATA.runs.length < 2) return;
  const host = document.getElementById("two"), picked = [];
  const said = element("p", { class: "caption picking", role: "status" });
  const say = () => { said.textContent = picked.length === 1 ? `Tick another run to compare it with ${DATA.runs[picked[0][0]].name}.` : "Tick two runs to compare them."; };
  const changed = (box, place) => {
    if (box.checked) picked.push([place, box]);
    else picked.splice(picked.findIndex(([known]) => known === place), 1);
    say();
    if (picked.length === 2) showTwo(host, picked.map(([known]) => known));
  };
  host.addEventListener("close", () => {
    for (const [, box] of picked.splice(0)) box.checked = false;
    say();
  });
  host.addEventListener("click", ({ target }) => { if (target === host) host.close(); }); // outside of its content
  say();
  for (const link of block.querySelectorAll('tbody td:first-child a[href^="#run-"]')) {
    const place = Number(link.hash.slice(5)), box = element("input", { type: "checkbox", "aria-label": `compare ${link.textContent}` });
    box.checked = false; // a browser may restore ticks when it loads a page again
    box.addEventListener("change", () => changed(box, place));
    link.before(box, " ");
  }
  block.querySelector(".tools").before(said);
}
