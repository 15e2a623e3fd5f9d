/** The best word after each depth: what each depth's output would say if it were the last. */
import { newest } from "./client.js";
import { byId, el, percent } from "./dom.js";
import { whileSeen } from "./seen.js";
import { shownPiece } from "./words.js";

/** Follows `line`. model.depthWords(line): {pieces, depths}; depths[d][place] is a list of {token, right, probability}, the best first. */
export function showDepths(model, line) {
  const table = byId("depth-words");
  const show = ({ pieces, depths }) => {
    const head = el("tr", {}, el("th", { scope: "col" }, "In the answer"), depths.map((_, depth) => el("th", { scope: "col" }, `After depth ${depth + 1}`)));
    const rows = pieces.map((piece, place) =>
      el("tr", {}, el("th", { scope: "row" }, label(piece)), depths.map((words) => cell(words[place]))),
    );
    table.replaceChildren(el("thead", {}, head), el("tbody", {}, rows));
  };
  const ask = whileSeen(table.parentElement, newest(table, (text) => (text.trim() ? model.depthWords(text) : { pieces: [], depths: [] }), show));
  line.watch(ask);
}

/** A piece for people: a space is `␣`; of a character of several pieces, all but the first are `·`. */
const label = (piece) => shownPiece(piece) || (piece ? "␣" : "·");

function cell([best, ...others]) {
  const title = others.map(({ token, probability }) => `${label(token)} ${percent(probability)}`).join(", ");
  return el("td", { class: best.right ? "right" : null, style: `--share:${best.probability}`, title: title && `then ${title}` }, label(best.token), " ", el("small", {}, percent(best.probability)));
}
