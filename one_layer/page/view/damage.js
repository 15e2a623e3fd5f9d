/** Only the masks know the task: with some of their bits flipped, or over another random layer, the answer falls apart. */
import { labelBars } from "./classify.js";
import { newest } from "./client.js";
import { byId, percent } from "./dom.js";
import { whileSeen } from "./seen.js";

/**
 * Follows `line`, `answer` (what the whole model says of it) and two sliders; sets `seed`, so that the pictures show the layer of the chosen
 * seed.
 */
export function showDamage(model, line, answer, seed) {
  const [flips, seeds, broken, whole, same] = ["flips", "seeds", "broken", "unbroken", "same"].map(byId);
  // A language model writes what is most probable on both sides: what it draws by chance differs without any damage.
  const writes = model.task === "causal_lm";
  const show = ([found, original]) => {
    broken.replaceChildren(shown(found));
    whole.replaceChildren(shown(original));
    const share = model.task === "translation" ? sameWords(found[0]?.text ?? "", original[0]?.text ?? "") : null;
    same.textContent = share === null ? "" : `${percent(share)} of the words are still the same.`;
  };
  const damage = () => ({ share: Number(flips.value) / 100, seed: model.seed + Number(seeds.value) });
  const isWhole = ({ share, seed: chosen }) => share === 0 && chosen === model.seed;
  const ask = whileSeen(broken, newest(
    broken,
    async (text, given) => {
      const original = writes ? await model.damaged(text, {}) : (answer.now ?? []);
      return [isWhole(given) ? original : await model.damaged(text, given), original];
    },
    show,
  ));
  const move = () => {
    const given = damage();
    byId("flips-now").textContent = `${flips.value} % of the bits flipped`;
    byId("seeds-now").textContent = given.seed === model.seed ? `the layer of seed ${given.seed}, its own` : `the layer of seed ${given.seed}`;
    ask(line.now, given);
  };
  flips.oninput = move;
  seeds.oninput = move;
  seeds.onchange = () => seed.set(damage().seed);
  byId("mend").onclick = () => {
    [flips.value, seeds.value] = [0, 0];
    move();
    seed.set(model.seed);
  };
  answer.watch(move);
}

/** The answer of any task as text or bars. */
function shown(answer) {
  if (typeof answer === "string") return answer;
  if (!answer.length) return "";
  if (answer[0].label !== undefined) return labelBars(answer);
  if (Array.isArray(answer[0])) return answer.map((fills) => fills[0].text).join(", ");
  return answer[0].text || "(nothing)";
}

/** The share of the words of `original` that `answer` has too, each as often at most. */
export function sameWords(answer, original) {
  const words = original.split(" "), left = answer.split(" ");
  const found = words.filter((word) => {
    const place = left.indexOf(word);
    if (place >= 0) left.splice(place, 1);
    return place >= 0;
  });
  return found.length / words.length;
}
