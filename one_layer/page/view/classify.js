/** Labels with their probabilities as you type. */
import { newest } from "./client.js";
import { bars, byId } from "./dom.js";

export function showLabels(model, line, answer) {
  const show = (labels, text) => {
    byId("answer").replaceChildren(text.trim() ? labelBars(labels) : "");
    answer.set(labels);
  };
  line.watch(newest(byId("answer"), (text) => (text.trim() ? model.run(text) : []), show));
}

/** A bar for each label; also for labels under damage. */
export function labelBars(labels) {
  const sorted = [...labels].sort((one, other) => other.probability - one.probability);
  return bars("ul", sorted.map(({ label, probability }) => [label, probability]));
}
