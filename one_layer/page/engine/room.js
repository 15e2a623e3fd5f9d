/** Where a network's matrices lie: in the memory of a WebAssembly module that multiplies with them, if the browser has WebAssembly with SIMD. */
import { PRODUCT } from "./product.js";

const AT_ONCE = 5; // rows, as product.wat has them
const PAGE = 2 ** 16, NUMBER = 4; // bytes
const multipliers = new WeakMap(); // by the buffer of their memory

let compiled; // the module; null where the browser has none

function compile() {
  try {
    const bytes = Uint8Array.from(atob(PRODUCT.replaceAll("\n", "")), (letter) => letter.charCodeAt(0));
    return WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : null;
  } catch {
    return null; // no WebAssembly, or the policy of the page forbids it
  }
}

/**
 * Room for arrays of these many numbers, each of which begins at a multiple of 16 bytes, and for the products of matrices.
 * @param {number[]} sizes @param {number} widest the most inputs of a matrix @param {number} longest the most outputs
 * @returns {(size: number) => Float32Array} gives an array of zeros; it is an ordinary one where there is no room
 */
export function roomFor(sizes, widest, longest) {
  const whole = (size) => Math.ceil(size / 4) * 4, x = whole(AT_ONCE * widest), y = whole(AT_ONCE * longest);
  const length = sizes.reduce((sum, size) => sum + whole(size), x + y);
  const memory = (compiled ??= compile()) && memoryOf(length * NUMBER);
  if (!memory) return (size) => new Float32Array(size);
  const { five } = new WebAssembly.Instance(compiled, { page: { memory } }).exports, { buffer } = memory;
  multipliers.set(buffer, { five, x: new Float32Array(buffer, 0, x), y: new Float32Array(buffer, x * NUMBER, y) });
  let next = x + y;
  return (size) => {
    if (next + size > length) return new Float32Array(size);
    const found = new Float32Array(buffer, next * NUMBER, size);
    next += whole(size);
    return found;
  };
}

function memoryOf(bytes) {
  try {
    return new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE), maximum: Math.ceil(bytes / PAGE) });
  } catch {
    return null; // too large for the browser
  }
}

/** y = x Wᵀ as linear.js computes it, in float32. @returns {boolean} whether the weights lie where this can be done; else y is as it was */
export function multiplied(x, rows, inputs, weights, outputs, y) {
  const own = inputs % 4 === 0 && outputs > 1 ? multipliers.get(weights.buffer) : undefined;
  if (!own) return false;
  for (let row = 0; row < rows; row += AT_ONCE) {
    const count = Math.min(AT_ONCE, rows - row);
    own.x.set(x.subarray(row * inputs, (row + count) * inputs)); // rows of before follow them; nobody reads their products
    own.five(own.x.byteOffset, inputs, weights.byteOffset, outputs, own.y.byteOffset);
    y.set(own.y.subarray(0, count * outputs), row * outputs);
  }
  return true;
}
