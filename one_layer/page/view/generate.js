/** A language model continues a text, token by token, with a temperature and a seed. */
import { failed } from "./client.js";
import { byId, el } from "./dom.js";

export function showGeneration(model, line, answer) {
  const [output, start, stop] = ["answer", "generate", "stop"].map(byId);
  let turn = 0; // a newer start ends an older one
  const run = async () => {
    const mine = ++turn;
    output.classList.remove("wrong");
    const written = el("span", { class: "written" });
    output.replaceChildren(el("span", { class: "given" }, line.now), written);
    [start.hidden, stop.hidden] = [true, false];
    try {
      const options = { temperature: Number(byId("temperature").value), seed: Number(byId("sample-seed").value), length: Number(byId("length").value) };
      for await (const text of model.generate(line.now, options)) {
        if (mine !== turn) break;
        written.textContent = text;
      }
    } catch (error) {
      failed(output, error);
    }
    answer.set(written.textContent);
    if (mine === turn) [start.hidden, stop.hidden] = [false, true];
  };
  start.onclick = run;
  stop.onclick = () => {
    turn++;
    [start.hidden, stop.hidden] = [false, true];
    start.focus();
  };
  byId("temperature").oninput = (event) => (byId("temperature-now").textContent = Number(event.target.value).toFixed(2));
  run();
}
