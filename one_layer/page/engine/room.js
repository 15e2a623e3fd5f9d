/** Where a network's matrices lie: in the memory of a WebAssembly module that multiplies with them, if the browser has WebAssembly with SIMD. */
import { codesOf } from "./codes.js";
import { instanceOf } from "./instance.js";
import { signsOf } from "./signs.js";

const AT_ONCE = 5, BLOCK = 16; // rows, and outputs of a masked matrix, as product.wat has them
const NUMBER = 4; // bytes
const multipliers = new WeakMap(); // by the buffer of their memory

/**
 * Room for arrays of these many numbers, each of which begins at a multiple of 16 bytes, and for the products of matrices.
 * @param {number[]} sizes @param {number} widest the most inputs of a matrix @param {number} longest the most outputs
 * @returns {(size: number) => Float32Array} gives an array of zeros; it is an ordinary one where there is no room
 */
export function roomFor(sizes, widest, longest) {
  const whole = (size) => Math.ceil(size / 4) * 4, parts = [AT_ONCE * widest, AT_ONCE * longest, BLOCK * widest].map(whole);
  const first = parts.reduce((a, b) => a + b), length = sizes.reduce((sum, size) => sum + whole(size), first), instance = instanceOf(length * NUMBER);
  if (!instance) return (size) => new Float32Array(size);
  const { five, masked, buffer } = instance, [x, y] = parts;
  multipliers.set(buffer, { five, masked, x: new Float32Array(buffer, 0, x), y: new Float32Array(buffer, x * NUMBER, y), block: (x + y) * NUMBER });
  let next = first;
  return (size) => {
    if (next + size > length) return new Float32Array(size);
    const found = new Float32Array(buffer, next * NUMBER, size);
    next += whole(size);
    return found;
  };
}

/** Whether an array lies where `multiplied` can multiply with it. @param {Float32Array} weights */
export const isInRoom = (weights) => multipliers.has(weights.buffer);

/**
 * y = x Wᵀ as linear.js computes it, in float32. @param {Float32Array | null} bits of a mask of W, as product.wat has them
 * @returns {boolean} whether the weights lie where this can be done; else y is as it was
 */
export function multiplied(x, rows, inputs, weights, outputs, y, bits = null) {
  const own = inputs % 4 === 0 && outputs > 1 ? multipliers.get(weights.buffer) : undefined;
  if (!own) return false;
  const quick = bits ? null : (signsOf(weights, inputs, outputs) ?? codesOf(weights, inputs, outputs));
  if (quick) quick(x, rows, y);
  else five(own, x, rows, inputs, weights, outputs, y, bits);
  return true;
}

function five(own, x, rows, inputs, weights, outputs, y, bits) {
  for (let row = 0; row < rows; row += AT_ONCE) {
    const count = Math.min(AT_ONCE, rows - row);
    own.x.set(x.subarray(row * inputs, (row + count) * inputs)); // rows of before follow them; nobody reads their products
    if (bits) own.masked(own.x.byteOffset, inputs, weights.byteOffset, bits.byteOffset, outputs, own.y.byteOffset, own.block);
    else own.five(own.x.byteOffset, inputs, weights.byteOffset, outputs, own.y.byteOffset, outputs * NUMBER);
    y.set(own.y.subarray(0, count * outputs), row * outputs);
  }
}
