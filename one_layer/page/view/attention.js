/** What each word of a translation attended to in the source: two rows of words with curves between them. */
import { el } from "./dom.js";
import { betweenWords, wordsOf } from "./words.js";

const LEAST = 0.04; // a curve thinner than this is not drawn

/** result: {tokens, sourceTokens, attention}. Move with the arrow keys, or point: the chosen word shows where it looked. */
export function attentionView({ tokens, sourceTokens, attention }) {
  const [targets, sources] = [wordsOf(tokens), wordsOf(sourceTokens)];
  const weights = betweenWords(attention, targets, sources);
  const curves = el("svg", { class: "curves", "aria-hidden": "true" });
  const said = el("p", { class: "said", "aria-live": "polite" });
  const above = sources.map(({ text, special }) => el("span", { class: special ? "word special" : "word" }, text));
  const below = targets.map(({ text, special }, place) => {
    const listeners = { onpointerenter: () => choose(place), onfocus: () => choose(place), onkeydown: (event) => move(event, place) };
    return el("button", { type: "button", class: special ? "word special" : "word", tabindex: place ? -1 : 0, ...listeners }, text);
  });
  const row = (words, label) => el("div", { class: "row", dir: "auto", role: "group", "aria-label": label }, words);
  const view = el("div", { class: "attention" }, curves, row(above, "Source"), row(below, "Translation"), said);

  let chosen = strongest(weights);
  const draw = () => {
    const box = curves.getBoundingClientRect();
    if (!box.width) return;
    const ends = (words, side) => words.map((word) => word.getBoundingClientRect()).map((at) => [at.left + at.width / 2 - box.left, at[side] - box.top]);
    const [starts, stops] = [ends(above, "bottom"), ends(below, "top")];
    const paths = weights.flatMap((row, place) =>
      row.map((weight, column) => {
        if (weight < LEAST) return null;
        const [[x, y], [toX, toY]] = [starts[column], stops[place]];
        const path = `M${x} ${y}C${x} ${y + 0.6 * (toY - y)} ${toX} ${y + 0.4 * (toY - y)} ${toX} ${toY}`;
        const opacity = place === chosen ? 0.25 + 0.75 * weight : 0.08 + 0.2 * weight;
        return el("path", { d: path, class: place === chosen ? "chosen" : "", "stroke-width": 1 + 7 * weight, "stroke-opacity": opacity });
      }),
    );
    curves.replaceChildren(...paths.filter(Boolean));
  };
  const choose = (place) => {
    chosen = place;
    below.forEach((word, each) => word.classList.toggle("chosen", each === place));
    above.forEach((word, column) => word.style.setProperty("--share", weights[place][column]));
    const most = sources.map(({ text }, column) => [text, weights[place][column]]).sort((one, other) => other[1] - one[1]).slice(0, 3);
    const found = most.filter(([, weight]) => weight >= LEAST).map(([text, weight]) => `${text} ${Math.round(100 * weight)} %`);
    said.textContent = `${targets[place].text} ← ${found.join(", ")}`;
    draw();
  };
  const move = (event, place) => {
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: below.length - 1 }[event.key];
    if (next === undefined || !below[next]) return;
    event.preventDefault();
    below.forEach((word, each) => (word.tabIndex = each === next ? 0 : -1));
    below[next].focus();
  };
  if (below.length) {
    new ResizeObserver(draw).observe(view);
    choose(chosen);
  }
  return view;
}

/** The word that looks at one place most. */
function strongest(weights) {
  const peaks = weights.map((row) => Math.max(0, ...row));
  return Math.max(0, peaks.indexOf(Math.max(...peaks)));
}
