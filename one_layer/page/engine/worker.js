/** What the page's worker answers: messages `{id, call, args}` become `{id, result}`, or `{id, error}` with one sentence. */
import { textOf } from "../text/index.js";
import { open } from "./index.js";

const models = []; // of the page's tickets, in their order
const draws = new Map(); // what the tickets draw: those of one seed and one shape have it in common
let model = null, changed = { key: "", model: null };
const begun = new Map(); // texts that are being written, by number

/** The calls by name; each returns what can be sent. */
export const CALLS = {
  open(bytes, tables) {
    models.push(open(bytes, (assets) => textOf(assets, tables), draws));
    model = models.at(-1);
    return model.describe();
  },
  /** The share of the masks' bits of a role in which a ticket agrees with the one that is used; null if their weights differ, or what their bits say. */
  beside(place, role) {
    const other = models[place], [ours, theirs] = [model, other].map(({ ticket }) => ticket.drawn.get(role)?.weights);
    const bits = ({ ticket, network: { matrices } }) => matrices.get(role)?.mask && `${matrices.get(role).depths} of ${ticket.config.maskKinds}`;
    if (!ours || ours !== theirs || !bits(model) || bits(model) !== bits(other)) return null;
    return { agree: model.agreement(other, role), masks: model.matrices().find((each) => each.role === role).depths.map((depth) => other.mask(role, depth)) };
  },
  unread: (lines) => model.unread(lines),
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

/** Makes a ticket the one that is asked. */
function choose(chosen) {
  if (chosen !== model) [model, changed] = [chosen, { key: "", model: null }];
}

const last = (texts) => [...texts].at(-1) ?? "";

/** Answers the messages of a worker's global scope, or of anything like it. */
export function serve(scope) {
  scope.onmessage = ({ data: { id, call, args, place = 0 } }) => {
    try {
      if (call !== "open") choose(models[place]);
      scope.postMessage({ id, result: CALLS[call](...args) });
    } catch (error) {
      const sentence = error instanceof RangeError ? "the browser has too little memory for this ticket" : error.message;
      scope.postMessage({ id, error: sentence });
    }
  };
}
