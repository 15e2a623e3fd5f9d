/** Translation as you type: the best translations with their scores, and what each of their words attended to. */
import { attentionView } from "./attention.js";
import { newest } from "./client.js";
import { byId, el, Value } from "./dom.js";
import { sentencesOf } from "./sentences.js";

const SHOWN = 5; // translations

const KEPT = 500; // translated sentences, so that what is typed behind them does not translate them again

/** Follows the value `line`; sets `answer`. Returns the first sentence, as a value. model: see model.js. */
export function showTranslations(model, line, answer) {
  const [output, list, words] = ["answer", "others", "words"].map(byId);
  const sentence = new Value(""), known = new Map();
  let results = [];
  const choose = (place) => {
    [...list.querySelectorAll("button")].forEach((button, each) => button.setAttribute("aria-pressed", each === place));
    words.replaceChildren(attentionView(results[place]));
  };
  /** Says how far the answer is. Until all of it is there, it can neither be copied nor turned round. */
  const at = (done, all) => {
    for (const id of ["swap", "copy"]) byId(id).setAttribute("aria-disabled", done < all);
    byId("progress").hidden = done === all || all === 1;
    byId("progress").textContent = `${done} of ${all} sentences`;
  };
  /** The sentences one by one. What was typed meanwhile ends it. */
  const translate = async (text) => {
    const parts = sentencesOf(text), found = [];
    at(0, parts.length);
    for (const { text: each, after } of parts) {
      if (each.trim() && !known.has(each)) known.set(each, await model.run(each, { count: SHOWN }));
      if (known.size > KEPT) known.delete(known.keys().next().value);
      if (line.now !== text) break;
      found.push({ source: each, results: known.get(each) ?? [], after });
      if (found.length === parts.length) break;
      output.textContent = joined(found);
      at(found.length, parts.length);
    }
    return found;
  };
  const show = (found, text) => {
    at(1, 1);
    const [first] = found.filter((each) => each.results.length), one = found.filter((each) => each.results.length).length === 1;
    results = first?.results ?? [];
    sentence.set(first?.source ?? "");
    answer.set(results);
    output.textContent = text.trim() ? joined(found) : "";
    byId("attention").hidden = !one;
    if (!one) return list.replaceChildren();
    list.replaceChildren(...results.map((result, place) => choice(result, place, results, choose)));
    choose(0);
  };
  const failed = (error) => {
    byId("progress").hidden = true;
    throw error;
  };
  line.watch(newest(output, (text) => translate(text).catch(failed), show));
  return sentence;
}

const joined = (found) => found.map(({ results, source, after }) => (results[0]?.text ?? source) + after).join("");

/** One of the translations: a button that shows its attention. The bar is its probability beside the best one's, for each token. */
function choice({ text, score }, place, results, choose) {
  const share = Math.exp(score - results[0].score);
  const bar = el("span", { class: "bar", style: `--share:${share}`, "aria-hidden": "true" });
  const number = el("span", { class: "number" }, score.toFixed(3).replace("-", "−"));
  const button = el("button", { type: "button", lang: byId("answer").lang || null, onclick: () => choose(place) }, el("span", { dir: "auto" }, text || "(nothing)"), bar, number);
  return el("li", {}, button);
}
