/**
 * Beam search for one sentence, exactly as `one_layer.tasks.translation.beam_search`, which is fairseq's: the best 2·beam continuations are
 * candidates; an eos among the first `beam` of them finishes a hypothesis, and the best `beam` without eos are continued.
 */
import { EOS, PAD } from "../text/special_tokens.js";
import { largest, logSum } from "./functions.js";
import { Refused } from "./refused.js";

/**
 * @typedef {{tokens: number[], score: number, attention: Float32Array[][]}} Hypothesis `tokens` end in eos; `score` is Σ log p / length^penalty;
 *   `attention` has, for each token and each depth, the weights over the source
 * @typedef {{score: number, parent: number, token: number}} Candidate
 */

/**
 * The finished hypotheses, best first. @param {import("./decoder.js").Decoder} decoder
 * @param {{beam: number, limit: number, lengthPenalty: number}} settings `limit`: the most tokens without eos
 * @returns {Hypothesis[]}
 */
export function beamSearch(decoder, { beam, limit, lengthPenalty }) {
  const last = Math.max(1, limit), finished = [];
  let alive = [{ tokens: [], score: 0, attention: [] }], parents = [0];
  for (let step = 0; ; step++) {
    const { logits, attention } = decoder.step(alive.map(({ tokens }) => tokens.at(-1) ?? EOS), step, parents);
    const vocabulary = logits.length / alive.length;
    const best = candidates(alive, logits, vocabulary, Math.min(2 * beam, beam * vocabulary - 1), step, step >= last);
    const extend = ({ score, parent, token }) => ({
      tokens: [...alive[parent].tokens, token],
      score,
      attention: [...alive[parent].attention, attention.map((beams) => beams[parent])],
    });
    for (const candidate of best.slice(0, beam)) {
      if (candidate.token !== EOS || finished.length === beam) continue;
      const whole = extend(candidate);
      finished.push({ ...whole, score: Math.fround(whole.score / Math.fround((step + 1) ** lengthPenalty)) });
    }
    const others = best.filter(({ token }) => token !== EOS).slice(0, beam);
    if (finished.length === beam || step >= last || others.length === 0) break;
    parents = others.map(({ parent }) => parent);
    alive = others.map(extend);
  }
  return finished.sort((one, other) => other.score - one.score);
}

/** The best continuations, best first; in a tie the lower beam wins, then the lower token; those of a beam are chosen by their logits. @returns {Candidate[]} */
function candidates(alive, logits, vocabulary, count, step, atLimit) {
  const found = alive.flatMap(({ score }, parent) => {
    const row = logits.subarray(parent * vocabulary, (parent + 1) * vocabulary), { most, log } = logSum(row);
    if (Number.isNaN(row[EOS] - most - log)) throw new Refused("the model's logits are not finite: this ticket cannot translate; use another");
    row[PAD] = -Infinity;
    if (step === 0) row[EOS] = -Infinity;
    const tokens = atLimit ? [EOS] : largest(row, count);
    return tokens.map((token) => ({ score: Math.fround(score + Math.fround(row[token] - most - log)), parent, token }));
  });
  const order = (one, other) => other.score - one.score || one.parent - other.parent || one.token - other.token;
  return found.filter(({ score }) => score > -Infinity).sort(order).slice(0, count);
}
