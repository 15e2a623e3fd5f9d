// What the reader has chosen, for the whole page: a model that stands out, and models that are hidden.

const DATA = JSON.parse(document.getElementById("data").textContent);
const chosen = { bench: 0, model: null, hidden: new Set() };
const drawings = new Set(); // functions that draw a figure again

function redraw() {
  for (const draw of drawings) draw();
  emphasise();
}

// Shows the chosen model everywhere: all marks and rows of other models step back.
function emphasise() {
  document.body.classList.toggle("emphasis", chosen.model !== null);
  const stop = document.getElementById("stop");
  stop.hidden = chosen.model === null;
  stop.textContent = `Stop to highlight ${chosen.model} (Esc)`;
  for (const node of document.querySelectorAll("[data-model]")) {
    node.classList.toggle("on", node.dataset.model === chosen.model);
  }
  for (const row of document.querySelectorAll("tbody tr")) {
    row.classList.toggle("on", chosen.model !== null && [...row.querySelectorAll("[data-model]")].some((node) => node.dataset.model === chosen.model));
  }
}

function choose(model) {
  chosen.model = chosen.model === model ? null : model;
  emphasise();
}

function hide(model) {
  if (!chosen.hidden.delete(model)) chosen.hidden.add(model);
  redraw();
}

// Everything that tells a model from the others, and all its settings, one click from its name.
function showModel(name) {
  const model = DATA.named[name];
  const dialog = document.getElementById("model");
  const differing = new Set(DATA.differing);
  const keys = Object.keys(model.settings).sort((a, b) => differing.has(b) - differing.has(a) || (a < b ? -1 : 1));
  const runs = DATA.runs.map((run, place) => [run, place]).filter(([run]) => run.model === name);
  const close = () => dialog.close();
  dialog.replaceChildren(
    element("form", { method: "dialog" }, element("button", { "aria-label": "Close" }, "×")),
    element("h2", {}, name),
    element("p", {}, model.full, "."),
    element("p", { class: "actions" },
      element("button", { type: "button", onclick: () => { choose(name); close(); } }, chosen.model === name ? "Stop to highlight it" : "Highlight it everywhere"),
      element("button", { type: "button", onclick: () => { hide(name); close(); } }, chosen.hidden.has(name) ? "Show it in the figures" : "Hide it in the figures")),
    element("p", {}, "Runs: ", ...runs.flatMap(([run, place], number) => [number ? ", " : "",
      element("a", { href: `#run-${place}`, onclick: close }, run.name)]), "."),
    element("p", { class: "caption" }, "Settings in which the models of this report differ are bold."),
    element("div", { class: "table" }, element("table", {}, element("tbody", {}, ...keys.map((key) =>
      element("tr", { class: differing.has(key) ? "differs" : null }, element("th", { scope: "row" }, key), element("td", {}, model.settings[key])))))));
  dialog.showModal();
}
