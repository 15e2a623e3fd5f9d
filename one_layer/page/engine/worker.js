/** What the page's worker answers: messages `{id, call, args}` become `{id, result}`, or `{id, error}` with one sentence. */
import { textOf } from "../text/index.js";
import { open } from "./index.js";

let model = null, changed = { key: "", model: null };
const begun = new Map(); // texts that are being written, by number

/** The calls by name; each returns what can be sent. */
export const CALLS = {
  open(bytes, tables) {
    model = open(bytes, (assets) => textOf(assets, tables));
    return model.describe();
  },
  run: (line, options) => model.run(line, options),
  /** The answer with a share of the mask bits flipped, and over the layer of another seed. */
  damaged(line, { share = 0, seed = model.ticket.seed }) {
    const key = `${share}/${seed}`;
    if (changed.key !== key) changed = { key, model: model.reseeded(seed).flipped(share) };
    return model.task === "causal_lm" ? last(changed.model.generate(line, { temperature: 0, length: 60 })) : changed.model.run(line);
  },
  mask: (role, depth) => model.mask(role, depth),
  weights: (role, seed, depth) => model.weights(role, seed, depth),
  overlap: (role) => model.overlap(role),
  depthWords: (line) => model.depthWords(line),
  /** Begins to write on; `next` gives the text so far, token by token. */
  begin(line, options) {
    begun.clear(); // whoever begins anew has stopped reading
    begun.set(options.key ?? 0, model.generate(line, options));
    return options.key ?? 0;
  },
  next(key) {
    const { value, done } = begun.get(key)?.next() ?? { done: true };
    return { text: value ?? "", done };
  },
};

const last = (texts) => [...texts].at(-1) ?? "";

/** Answers the messages of a worker's global scope, or of anything like it. */
export function serve(scope) {
  scope.onmessage = ({ data: { id, call, args } }) => {
    try {
      scope.postMessage({ id, result: CALLS[call](...args) });
    } catch (error) {
      const sentence = error instanceof RangeError ? "the browser has too little memory for this ticket" : error.message;
      scope.postMessage({ id, error: sentence });
    }
  };
}
