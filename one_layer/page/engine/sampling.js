/** Draws tokens from a causal language model, as `one_layer.tasks.causal_lm.sampling`; the random numbers are Philox's, not JAX's. */
import { Decoder } from "./decoder.js";
import { largest } from "./functions.js";
import { Refused } from "./refused.js";
import { UNK } from "../text/special_tokens.js";

/**
 * The tokens that continue a prompt, one by one. When the context is full, its older half is dropped and the rest is read anew.
 * @param {import("./network.js").Network} network @param {number[]} prompt at least one token @param {number} context
 * @param {{temperature: number, length: number}} settings
 * @param {import("./philox.js").Stream} stream @returns {Generator<number>}
 */
export function* continued(network, prompt, context, settings, stream) {
  const tokens = [...prompt];
  let first = 0, place = 0, decoder = new Decoder(network, null);
  while (tokens.length < prompt.length + settings.length) {
    const { logits } = decoder.step([tokens[first + place]], place, [0]);
    if (first + place + 1 === tokens.length) {
      const token = sampled(logits, settings, stream);
      tokens.push(token);
      yield token;
    }
    place++;
    if (place === context) {
      first += context - Math.floor(context / 2);
      place = 0;
      decoder = new Decoder(network, null);
    }
  }
}

/** A token that is not special. Temperature 0 takes the most probable one. @returns {number} */
export function sampled(logits, { temperature }, stream) {
  if (!logits.every(Number.isFinite)) throw new Refused("the model's logits are not finite: this ticket cannot continue a text; use another");
  logits.fill(-Infinity, 0, UNK + 1);
  const order = largest(logits, temperature === 0 ? 1 : logits.length - UNK - 1);
  if (temperature === 0) return order[0];
  const chances = order.map((token) => Math.exp((logits[token] - logits[order[0]]) / temperature)), total = chances.reduce((a, b) => a + b);
  const [word] = stream.words(1);
  let left = (word / 2 ** 32) * total;
  for (let n = 0; n < order.length; n++) if ((left -= chances[n]) < 0) return order[n];
  return order[order.length - 1];
}
