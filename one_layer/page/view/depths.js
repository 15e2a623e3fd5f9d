/** The best word after each depth: what each depth's output would say if it were the last. */
import { newest } from "./client.js";
import { byId, el, percent } from "./dom.js";
import { whileSeen } from "./seen.js";
import { shownPiece } from "./words.js";

/** Follows `line`. model.depthWords(line): {pieces, depths}; depths[d][place] is a list of {token, probability}, the best first. */
export function showDepths(model, line) {
  const table = byId("depth-words");
  const show = ({ pieces, depths }) => {
    const head = el("tr", {}, el("th", { scope: "col" }, "In the answer"), depths.map((_, depth) => el("th", { scope: "col" }, `After depth ${depth + 1}`)));
    const rows = pieces.map((piece, place) =>
      el("tr", {}, el("th", { scope: "row" }, label(piece)), depths.map((words) => cell(words[place], piece))),
    );
    table.replaceChildren(el("thead", {}, head), el("tbody", {}, rows));
  };
  const ask = whileSeen(table.parentElement, newest(table, (text) => (text.trim() ? model.depthWords(text) : { pieces: [], depths: [] }), show));
  line.watch(ask);
}

const label = (piece) => shownPiece(piece) || "␣";

function cell([best, ...others], piece) {
  const title = others.map(({ token, probability }) => `${label(token)} ${percent(probability)}`).join(", ");
  return el("td", { class: best.token === piece ? "right" : null, style: `--share:${best.probability}`, title: title && `then ${title}` }, label(best.token), " ", el("small", {}, percent(best.probability)));
}
