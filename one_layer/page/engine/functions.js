/** Norms, activations and probabilities, on rows of numbers. */
import { instanceOf } from "./instance.js";

/**
 * LayerNorm or RMSNorm of each row (`one_layer.layers.matrix.Norm`). @param {Float32Array} x [rows, d]
 * @param {{d_model: number, norm_epsilon: number}} config @param {string} kind @param {Float32Array | null} scale [d] @param {Float32Array | null} shift [d] @returns {Float32Array}
 */
export function norm(x, { d_model: d, norm_epsilon: epsilon }, kind, scale, shift) {
  const y = new Float32Array(x.length), centred = !kind.startsWith("rms");
  for (let at = 0; at < x.length; at += d) {
    let mean = 0, square = 0;
    if (centred) for (let k = at; k < at + d; k++) mean += x[k];
    mean /= d;
    for (let k = at; k < at + d; k++) square += (x[k] - mean) ** 2;
    const factor = 1 / Math.sqrt(square / d + epsilon);
    for (let k = 0; k < d; k++) y[at + k] = (x[at + k] - mean) * factor * (scale ? scale[k] : 1) + (shift ? shift[k] : 0);
  }
  return y;
}

/** The error function, to about 1e-15: a series near 0, and a continued fraction beyond. @param {number} x */
export function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (size + fraction)));
}

/** In place. @type {Record<string, (x: Float32Array) => Float32Array>} */
export const ACTIVATIONS = {
  relu: (x) => each(x, (value) => (value > 0 ? value : value < 0 ? 0 : value)),
  gelu: (x) => each(x, (value) => (value * (1 + erf(value / Math.SQRT2))) / 2),
  gelu_tanh: (x) => each(x, (value) => (value * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value ** 3)))) / 2),
  silu: (x) => each(x, (value) => value / (1 + Math.exp(-value))),
  tanh: (x) => each(x, Math.tanh),
};

function each(x, change) {
  for (let k = 0; k < x.length; k++) x[k] = change(x[k]);
  return x;
}

/** The logarithms of the probabilities of one row of logits, in place. @param {Float32Array} logits @returns {Float32Array} */
export function logSoftmax(logits) {
  const { most, log } = logSum(logits);
  for (let k = 0; k < logits.length; k++) logits[k] = logits[k] - most - log;
  return logits;
}

let room = { length: 0 }; // for so many numbers, with the functions of product.wat where there are any

/** The largest of some logits, and the logarithm of Σ exp(logit - most). @param {Float32Array} logits @returns {{most: number, log: number}} */
export function logSum(logits) {
  const length = Math.ceil(logits.length / 4) * 4;
  if (room.length < length) room = { length, ...instanceOf(4 * length) };
  if (room.buffer) {
    const numbers = new Float32Array(room.buffer, 0, length).fill(-Infinity, logits.length);
    numbers.set(logits);
    const most = room.most(0, length);
    return { most, log: Math.log(room.exponentials(0, length, most)) };
  }
  let most = -Infinity, sum = 0;
  for (let k = 0; k < logits.length; k++) if (logits[k] > most) most = logits[k];
  for (let k = 0; k < logits.length; k++) sum += Math.exp(logits[k] - most);
  return { most, log: Math.log(sum) };
}

const MANY = 64; // of which a whole sort is faster than finding the place of each

/** The numbers of the largest values, largest first; of equal ones, the first. @param {ArrayLike<number>} values @param {number} count @returns {number[]} */
export function largest(values, count) {
  if (count > MANY) return [...Uint32Array.from(values, (_, k) => k).sort((a, b) => values[b] - values[a] || a - b).subarray(0, count)];
  const best = [];
  let least = -Infinity;
  for (let k = 0; k < values.length; k++) {
    if (best.length === count && !(values[k] > least)) continue;
    let place = best.length;
    while (place > 0 && values[k] > values[best[place - 1]]) place--;
    best.splice(place, 0, k);
    if (best.length > count) best.pop();
    least = values[best.at(-1)];
  }
  return best;
}

/** Row p is [sin(p f_0), ..., cos(p f_0), ...] as in `one_layer.layers.matrix.sinusoids`. @param {number} place @param {number} d @returns {Float32Array} */
export function sinusoid(place, d) {
  const half = d / 2, row = new Float32Array(d);
  for (let k = 0; k < half; k++) {
    const angle = place * Math.exp((-Math.log(10000) / (half - 1)) * k);
    row[k] = Math.sin(angle);
    row[half + k] = Math.cos(angle);
  }
  return row;
}
