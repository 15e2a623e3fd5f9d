/** Translation as you type: the best translations with their scores, and what each of their words attended to. */
import { attentionView } from "./attention.js";
import { newest } from "./client.js";
import { byId, el } from "./dom.js";

const SHOWN = 5; // translations

/** Follows the value `line`; sets `answer`. model: see model.js. */
export function showTranslations(model, line, answer) {
  const [output, list, words] = ["answer", "others", "words"].map(byId);
  let results = [];
  const choose = (place) => {
    [...list.querySelectorAll("button")].forEach((button, each) => button.setAttribute("aria-pressed", each === place));
    words.replaceChildren(attentionView(results[place]));
  };
  const show = (found, text) => {
    results = found.slice(0, SHOWN);
    answer.set(text.trim() ? results : []);
    output.classList.remove("wrong");
    output.textContent = text.trim() ? results[0].text : "";
    byId("attention").hidden = !text.trim();
    if (!text.trim()) return list.replaceChildren();
    list.replaceChildren(...results.map((result, place) => choice(result, place, results, choose)));
    choose(0);
  };
  const ask = newest(output, (text) => model.run(text, { count: SHOWN }), show, (error) => {
    output.classList.add("wrong");
    output.textContent = error.message;
  });
  line.watch(ask);
}

/** One of the translations: a button that shows its attention. The bar is its probability beside the best one's, for each token. */
function choice({ text, score }, place, results, choose) {
  const share = Math.exp(score - results[0].score);
  const bar = el("span", { class: "bar", style: `--share:${share}`, "aria-hidden": "true" });
  const number = el("span", { class: "number" }, score.toFixed(3).replace("-", "−"));
  const button = el("button", { type: "button", lang: byId("answer").lang || null, onclick: () => choose(place) }, el("span", {}, text || "(nothing)"), bar, number);
  return el("li", {}, button);
}
