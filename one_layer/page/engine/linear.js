/** The one expensive operation: rows of numbers times a matrix, by WebAssembly or, where that is not possible, here with sums in float64. */
import { multiplied } from "./room.js";

/**
 * y = x Wᵀ + b. @param {Float32Array} x [rows, inputs] @param {number} rows @param {number} inputs
 * @param {Float32Array} weights [outputs, inputs] @param {number} outputs @param {Float32Array | null} bias [outputs]
 * @param {Float32Array | null} bits of a mask of the weights, where these lie in the memory of a WebAssembly module @returns {Float32Array} [rows, outputs]
 */
export function linear(x, rows, inputs, weights, outputs, bias = null, bits = null) {
  const y = new Float32Array(rows * outputs);
  if (!multiplied(x, rows, inputs, weights, outputs, y, bits)) multiply(x, rows, inputs, weights, outputs, y);
  if (bias !== null) for (let row = 0; row < y.length; row += outputs) for (let k = 0; k < outputs; k++) y[row + k] += bias[k];
  return y;
}

function multiply(x, rows, inputs, weights, outputs, y) {
  let row = 0;
  for (; row + 5 <= rows; row += 5) five(x, row * inputs, inputs, weights, outputs, y, row * outputs);
  if (row < rows && rows >= 5) five(x, (rows - 5) * inputs, inputs, weights, outputs, y, (rows - 5) * outputs);
  else for (; row < rows; row++) one(x, row * inputs, inputs, weights, outputs, y, row * outputs);
}

/** Five rows, as many as a usual beam has, and two outputs at once: ten sums in registers, so that a number is loaded for five products. */
function five(x, a, inputs, weights, outputs, y, at) {
  const b = a + inputs, c = b + inputs, d = c + inputs, e = d + inputs;
  for (let o = 0; o + 1 < outputs; o += 2, at += 2) {
    const p = o * inputs, q = p + inputs;
    let a0 = 0, b0 = 0, c0 = 0, d0 = 0, e0 = 0, a1 = 0, b1 = 0, c1 = 0, d1 = 0, e1 = 0;
    for (let i = 0; i < inputs; i++) {
      const first = weights[p + i], second = weights[q + i];
      let value = x[a + i];
      a0 += value * first;
      a1 += value * second;
      value = x[b + i];
      b0 += value * first;
      b1 += value * second;
      value = x[c + i];
      c0 += value * first;
      c1 += value * second;
      value = x[d + i];
      d0 += value * first;
      d1 += value * second;
      value = x[e + i];
      e0 += value * first;
      e1 += value * second;
    }
    y[at] = a0;
    y[at + 1] = a1;
    y[at + outputs] = b0;
    y[at + outputs + 1] = b1;
    y[at + 2 * outputs] = c0;
    y[at + 2 * outputs + 1] = c1;
    y[at + 3 * outputs] = d0;
    y[at + 3 * outputs + 1] = d1;
    y[at + 4 * outputs] = e0;
    y[at + 4 * outputs + 1] = e1;
  }
  if (outputs % 2) for (let row = 0; row < 5; row++) y[at + row * outputs] = dot(x, a + row * inputs, weights, (outputs - 1) * inputs, inputs);
}

/** One row, and four outputs at once. */
function one(x, a, inputs, weights, outputs, y, at) {
  let o = 0;
  for (; o + 3 < outputs; o += 4) {
    const p = o * inputs, q = p + inputs, r = q + inputs, s = r + inputs;
    let y0 = 0, y1 = 0, y2 = 0, y3 = 0;
    for (let i = 0; i < inputs; i++) {
      const value = x[a + i];
      y0 += value * weights[p + i];
      y1 += value * weights[q + i];
      y2 += value * weights[r + i];
      y3 += value * weights[s + i];
    }
    y[at + o] = y0;
    y[at + o + 1] = y1;
    y[at + o + 2] = y2;
    y[at + o + 3] = y3;
  }
  for (; o < outputs; o++) y[at + o] = dot(x, a, weights, o * inputs, inputs);
}

/** The product of two vectors that begin at `a` and `b`. @returns {number} */
export function dot(x, a, y, b, length) {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += x[a + i] * y[b + i];
  return sum;
}
