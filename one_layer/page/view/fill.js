/** A masked model fills each `<mask>` of the line as you type. */
import { newest } from "./client.js";
import { bars, byId } from "./dom.js";

export function showFills(model, line, answer) {
  const show = (fills) => {
    byId("answer").replaceChildren(...fills.map((each) => bars("ol", each.map(({ text, probability }) => [text, probability]))));
    answer.set(fills);
  };
  byId("add-mask").onclick = () => {
    const field = byId("line");
    field.setRangeText("<mask>", field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input"));
    field.focus();
  };
  line.watch(newest(byId("answer"), (text) => (text.trim() ? model.run(text) : []), show));
}
