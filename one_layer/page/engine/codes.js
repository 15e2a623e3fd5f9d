/**
 * Products with a table whose rows are whole multiples of one number each, as that of embeddings which the ticket stores in 4 bits: a byte for each
 * number is a quarter of what must come from memory at each step of a search, and the numbers are the same ones.
 */
import { instanceOf } from "./instance.js";

const AT_ONCE = 5; // rows, as product.wat has them
const BLOCK = 16; // outputs that are numbers at a time
const LARGE = 2 ** 20; // numbers, so many that a processor's cache does not hold them
const NUMBER = 4; // bytes
const known = new WeakMap(); // by the table

/**
 * What multiplies with a large table [outputs, inputs]; null if it has other numbers.
 * @param {Float32Array} weights @returns {((x: Float32Array, rows: number, y: Float32Array) => void) | null} y = x Wᵀ
 */
export function codesOf(weights, inputs, outputs) {
  if (inputs % BLOCK || outputs < BLOCK || weights.length < LARGE) return null;
  if (!known.has(weights)) known.set(weights, multiplier(weights, inputs, outputs));
  return known.get(weights);
}

function multiplier(weights, inputs, outputs) {
  const units = new Float32Array(outputs), codes = new Int8Array(weights.length);
  for (let output = 0; output < outputs; output++) {
    const first = output * inputs, end = first + inputs;
    let unit = Infinity, others = 0;
    for (let k = first; k < end; k++) if (weights[k] && Math.abs(weights[k]) < unit) unit = Math.abs(weights[k]);
    units[output] = unit === Infinity ? 0 : unit;
    for (let k = first; k < end; k++) {
      codes[k] = Math.round(weights[k] / unit);
      others += Number(Math.fround(codes[k] * units[output]) !== weights[k]);
    }
    if (others) return null;
  }
  const lengths = [AT_ONCE * inputs, AT_ONCE * outputs, BLOCK * inputs, outputs].map((length) => 16 * Math.ceil((length * NUMBER) / 16));
  const [y, block, unit, code] = lengths.map((_, part) => lengths.slice(0, part + 1).reduce((a, b) => a + b));
  const instance = instanceOf(code + codes.length);
  if (!instance) return null;
  const { buffer, codes: multiply } = instance, given = new Float32Array(buffer, 0, AT_ONCE * inputs), found = new Float32Array(buffer, y, AT_ONCE * outputs);
  new Float32Array(buffer, unit, outputs).set(units);
  new Int8Array(buffer, code).set(codes);
  return (x, rows, to) => {
    for (let row = 0; row < rows; row += AT_ONCE) {
      const count = Math.min(AT_ONCE, rows - row);
      given.set(x.subarray(row * inputs, (row + count) * inputs));
      multiply(0, inputs, code, unit, outputs, y, block);
      to.set(found.subarray(0, count * outputs), row * outputs);
    }
  };
}
