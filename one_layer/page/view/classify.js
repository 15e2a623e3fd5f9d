/** Labels with their probabilities as you type. */
import { newest } from "./client.js";
import { byId, el, percent } from "./dom.js";

export function showLabels(model, line, answer) {
  const output = byId("answer");
  const show = (labels, text) => {
    output.classList.remove("wrong");
    output.replaceChildren(text.trim() ? labelBars(labels) : "");
    answer.set(labels);
  };
  const ask = newest(output, (text) => (text.trim() ? model.run(text) : []), show, (error) => {
    output.classList.add("wrong");
    output.textContent = error.message;
  });
  line.watch(ask);
}

/** A bar for each label; also for labels under damage. */
export function labelBars(labels) {
  const sorted = [...labels].sort((one, other) => other.probability - one.probability);
  return el(
    "ul",
    { class: "bars" },
    sorted.map(({ label, probability }) =>
      el("li", {}, el("span", {}, label), el("span", { class: "bar", style: `--share:${probability}`, "aria-hidden": "true" }), el("span", { class: "number" }, percent(probability, 1))),
    ),
  );
}
