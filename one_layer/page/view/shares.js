/** How much two depths share: a table with the part of the weights that one mask keeps, or turns, and the other too. */
import { byId, el, percent } from "./dom.js";

export function showShares(model, role) {
  const table = byId("shares");
  role.watch(async (chosen) => {
    const { depths, chance } = model.matrix(chosen);
    byId("sharing").hidden = depths.length < 2;
    if (depths.length < 2) return;
    const shares = await model.overlap(chosen);
    if (chosen !== role.now) return;
    const head = el("tr", {}, el("td"), depths.map((_, place) => el("th", { scope: "col" }, `Depth ${place + 1}`)));
    const rows = shares.map((row, place) =>
      el("tr", {}, el("th", { scope: "row" }, `Depth ${place + 1}`), row.map((each, other) => el("td", { class: place === other ? "own" : null, style: `--share:${each}` }, percent(each, 1)))),
    );
    table.replaceChildren(el("thead", {}, head), el("tbody", {}, rows));
    byId("chance").textContent = percent(chance);
  });
}
