/** Weights that the seed prunes or locks, for which a ticket has no bits: `one_layer.initializers.Settled` and `one_layer.tickets.free_bits`. */
import { Stream } from "./philox.js";

/** How many of `size` weights are pruned and locked. @param {any} config @param {number} size @returns {[number, number]} */
export const settledCounts = (config, size) => (config.settles ? [Math.trunc(config.pruned * size), Math.trunc(config.locked * size)] : [0, 0]);

/** -1 where a weight is pruned, 1 where it is locked, 0 where it is free: in the order of one draw for each weight. @returns {Int8Array} */
function settled(config, seed, role, size) {
  const words = new Stream(seed, role).words(size), [pruned, locked] = settledCounts(config, size);
  const order = Float64Array.from({ length: size }, (_, k) => (words[k] >>> 8) * 2 ** 29 + k).sort(), found = new Int8Array(size);
  for (let place = 0; place < pruned + locked; place++) found[order[place] % 2 ** 29] = place < pruned ? -1 : 1;
  return found;
}

/**
 * The mask with the bits of all weights, from one with those of the free weights.
 * @param {import("./ticket.js").Mask} free @param {any} config @param {number} seed @param {string} role
 * @param {number[] | null} numbers of the layers, if each has weights of its own @returns {import("./ticket.js").Mask}
 */
export function withSettled(free, config, seed, role, numbers) {
  const size = free.shape[0] * free.shape[1], bytes = Math.ceil(size / 8), count = free.layers ?? 1;
  const ownBytes = (free.mask ?? free.sign).length / count, empty = () => new Uint8Array(bytes * count);
  const whole = { mask: empty(), sign: free.sign && empty(), free: empty() };
  let fixed = numbers === null ? settled(config, seed, `${role}/settled`, size) : null;
  for (let layer = 0; layer < count; layer++) {
    if (numbers !== null) fixed = settled(config, seed, `${role}/settled#${numbers[layer]}`, size);
    for (let k = 0, place = 0; k < size; k++) {
      const at = layer * bytes + (k >>> 3), bit = 1 << (k & 7), own = layer * ownBytes + (place >>> 3);
      const has = (bits) => fixed[k] === 0 && bits && (bits[own] >>> (place & 7)) & 1;
      if (fixed[k] > 0 || (fixed[k] === 0 && (free.mask === null || has(free.mask)))) whole.mask[at] |= bit;
      if (has(free.sign)) whole.sign[at] |= bit;
      if (fixed[k] !== 0) continue;
      whole.free[at] |= bit;
      place++;
    }
  }
  return { ...free, ...whole };
}
