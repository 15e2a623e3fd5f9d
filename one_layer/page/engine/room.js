/** Where a network's matrices lie: in the memory of a WebAssembly module that multiplies with them, if the browser has WebAssembly with SIMD. */
import { instanceOf } from "./instance.js";
import { signsOf } from "./signs.js";

const AT_ONCE = 5; // rows, as product.wat has them
const NUMBER = 4; // bytes
const multipliers = new WeakMap(); // by the buffer of their memory

/**
 * Room for arrays of these many numbers, each of which begins at a multiple of 16 bytes, and for the products of matrices.
 * @param {number[]} sizes @param {number} widest the most inputs of a matrix @param {number} longest the most outputs
 * @returns {(size: number) => Float32Array} gives an array of zeros; it is an ordinary one where there is no room
 */
export function roomFor(sizes, widest, longest) {
  const whole = (size) => Math.ceil(size / 4) * 4, x = whole(AT_ONCE * widest), y = whole(AT_ONCE * longest);
  const length = sizes.reduce((sum, size) => sum + whole(size), x + y), instance = instanceOf(length * NUMBER);
  if (!instance) return (size) => new Float32Array(size);
  const { five, buffer } = instance;
  multipliers.set(buffer, { five, x: new Float32Array(buffer, 0, x), y: new Float32Array(buffer, x * NUMBER, y) });
  let next = x + y;
  return (size) => {
    if (next + size > length) return new Float32Array(size);
    const found = new Float32Array(buffer, next * NUMBER, size);
    next += whole(size);
    return found;
  };
}

/** y = x Wᵀ as linear.js computes it, in float32. @returns {boolean} whether the weights lie where this can be done; else y is as it was */
export function multiplied(x, rows, inputs, weights, outputs, y) {
  const own = inputs % 4 === 0 && outputs > 1 ? multipliers.get(weights.buffer) : undefined;
  if (!own) return false;
  const signs = signsOf(weights, inputs, outputs);
  if (signs) signs(x, rows, y);
  else five(own, x, rows, inputs, weights, outputs, y);
  return true;
}

function five(own, x, rows, inputs, weights, outputs, y) {
  for (let row = 0; row < rows; row += AT_ONCE) {
    const count = Math.min(AT_ONCE, rows - row);
    own.x.set(x.subarray(row * inputs, (row + count) * inputs)); // rows of before follow them; nobody reads their products
    own.five(own.x.byteOffset, inputs, weights.byteOffset, outputs, own.y.byteOffset);
    y.set(own.y.subarray(0, count * outputs), row * outputs);
  }
}
