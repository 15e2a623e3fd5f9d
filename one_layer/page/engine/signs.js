/**
 * Products with a table whose numbers have one size, so that only their signs differ: the table of a model of signs. Of each eight inputs, all
 * 256 sums that signs can make are computed once; an output is then a sum of these, one for each byte of its signs, and no weight is multiplied.
 */
import { instanceOf } from "./instance.js";

const AT_ONCE = 8; // rows, as product.wat has them
const GROUP = 8, SUMS = 2 ** GROUP; // inputs, and sums of them
const MANY = 2 * SUMS; // outputs, for which the sums are worth it
const NUMBER = 4; // bytes
const known = new WeakMap(); // by the table

/**
 * What multiplies with a table [outputs, inputs]; null if it has numbers of several sizes. A row may be zeros, as that of the pad is.
 * @param {Float32Array} weights @returns {((x: Float32Array, rows: number, y: Float32Array) => void) | null} y = x Wᵀ
 */
export function signsOf(weights, inputs, outputs) {
  if (inputs % GROUP || outputs < MANY) return null;
  if (!known.has(weights)) known.set(weights, multiplier(weights, inputs, outputs));
  return known.get(weights);
}

function multiplier(weights, inputs, outputs) {
  const size = Math.abs(weights.find((weight) => weight)), packed = new Uint8Array(weights.length / 8), zeros = [];
  const words = new Uint32Array(weights.buffer, weights.byteOffset, weights.length), [word] = new Uint32Array(Float32Array.of(size).buffer);
  for (let output = 0, k = 0; output < outputs; output++) {
    const own = weights[k] ? word : 0;
    let other = 0;
    for (const end = k + inputs; k < end; k++) {
      other |= (words[k] ^ own) << 1; // without the sign, which is the highest bit
      packed[k >>> 3] |= (words[k] >>> 31) << (k & 7);
    }
    if (other) return null;
    if (!own) zeros.push(output);
  }
  const lengths = [AT_ONCE * inputs, (AT_ONCE * SUMS * inputs) / GROUP, AT_ONCE * outputs].map((length) => length * NUMBER);
  const [sums, y, bits] = lengths.map((_, part) => lengths.slice(0, part + 1).reduce((a, b) => a + b));
  const instance = instanceOf(bits + packed.length);
  if (!instance) return null;
  const { buffer, signs } = instance, given = new Float32Array(buffer, 0, AT_ONCE * inputs), found = new Float32Array(buffer, y, AT_ONCE * outputs);
  new Uint8Array(buffer).set(packed, bits);
  return (x, rows, to) => {
    for (let row = 0; row < rows; row += AT_ONCE) {
      const count = Math.min(AT_ONCE, rows - row);
      for (let k = 0, at = row * inputs; k < count; k++) for (let i = 0; i < inputs; i++) given[i * AT_ONCE + k] = x[at++] * size;
      signs(0, inputs / GROUP, sums, bits, outputs, y);
      to.set(found.subarray(0, count * outputs), row * outputs);
    }
    for (const zero of zeros) for (let row = 0; row < rows; row++) to[row * outputs + zero] = 0;
  };
}
