// Makes the page answer.

function showBench(place) {
  chosen.bench = place;
  chosen.model = null; // another test set may not have it
  for (const node of document.querySelectorAll("[data-bench]")) node.hidden = Number(node.dataset.bench) !== place;
  const hero = document.querySelector(`figure.hero[data-bench="${place}"]`);
  if (hero && !hero.firstChild) bytesFigure(hero, place);
  keepFigures(document.getElementById("keeps"), place);
  redraw();
}

function route() {
  const found = /^#run-(\d+)$/.exec(location.hash);
  if (found && DATA.runs[Number(found[1])]) return showRun(Number(found[1]));
  document.getElementById("run").hidden = true;
  const main = document.querySelector("main"), came = main.hidden;
  main.hidden = false;
  if (came) {
    redraw();
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }
}

document.body.append(element("div", { id: "tip", hidden: true, role: "status" }), element("button", { id: "stop", type: "button", hidden: true, onclick: () => choose(null) }));
addEventListener("keydown", (key) => {
  if (key.key === "Escape" && !document.querySelector("dialog[open]")) choose(null);
});
for (const block of document.querySelectorAll(".block")) enhance(block);
pickTwo(document.querySelector("#runs + .block"));
document.addEventListener("click", (click) => {
  const button = click.target.closest?.("button.model");
  if (button && !button.closest("#run")) showModel(button.dataset.model);
});
document.getElementById("bench")?.addEventListener("change", (change) => showBench(Number(change.target.value)));
convergenceFigures(document.getElementById("convergence"));
showBench(0);
addEventListener("hashchange", route);
route();
