/** A masked model fills each `<mask>` of the line as you type. */
import { newest } from "./client.js";
import { byId, el, percent } from "./dom.js";

export function showFills(model, line, answer) {
  const output = byId("answer");
  const show = (fills) => {
    output.classList.remove("wrong");
    output.replaceChildren(...fills.map(fillBars));
    answer.set(fills);
  };
  const ask = newest(output, (text) => (text.trim() ? model.run(text) : []), show, (error) => {
    output.classList.add("wrong");
    output.textContent = error.message;
  });
  byId("add-mask").onclick = () => {
    const field = byId("line");
    field.setRangeText("<mask>", field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input"));
    field.focus();
  };
  line.watch(ask);
}

/** The candidates for one mask. */
function fillBars(candidates) {
  const rows = candidates.map(({ text, probability }) =>
    el("li", {}, el("span", {}, text), el("span", { class: "bar", style: `--share:${probability}`, "aria-hidden": "true" }), el("span", { class: "number" }, percent(probability, 1))),
  );
  return el("ol", { class: "bars" }, rows);
}
