/** The one expensive operation: rows of numbers times a matrix, by WebAssembly or, where that is not possible, here with sums in float64. */
import { multiplied } from "./room.js";

/**
 * y = x Wᵀ + b. @param {Float32Array} x [rows, inputs] @param {number} rows @param {number} inputs
 * @param {Float32Array} weights [outputs, inputs] @param {number} outputs @param {Float32Array | null} bias [outputs]
 * @returns {Float32Array} [rows, outputs]
 */
export function linear(x, rows, inputs, weights, outputs, bias = null) {
  const y = new Float32Array(rows * outputs);
  if (!multiplied(x, rows, inputs, weights, outputs, y)) {
    for (let row = 0, at = 0; row < rows; row++) for (let o = 0; o < outputs; o++, at++) y[at] = dot(x, row * inputs, weights, o * inputs, inputs);
  }
  if (bias !== null) for (let row = 0; row < y.length; row += outputs) for (let k = 0; k < outputs; k++) y[row + k] += bias[k];
  return y;
}

/** The product of two vectors that begin at `a` and `b`. @returns {number} */
export function dot(x, a, y, b, length) {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += x[a + i] * y[b + i];
  return sum;
}
