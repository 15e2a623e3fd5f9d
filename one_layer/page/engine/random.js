/**
 * Random weights that depend only on a seed, a role, a shape and a scheme: bit for bit those of `one_layer.initializers`.
 *
 * Each element is an integer of NumPy's Philox stream, converted to float32 once and multiplied by one float32 constant.
 */
import { Blake2b } from "./blake2b.js";
import { orthogonal } from "./orthogonal.js";
import { Stream } from "./philox.js";

/** @typedef {{role: string, shape: [number, number], scheme: string, scale: number, fan_in: number | null,
 *   layers: number | null, zero_row: number | null, checksum: string}} Recipe */

const NORMAL = ["kaiming_normal", "xavier_normal", "normal"];
const UNIFORM = ["kaiming_uniform", "xavier_uniform"];
export const SCHEMES = [...NORMAL, ...UNIFORM, "signed_constant", "xavier_constant", "unsigned_constant", "orthogonal"];

const AT_ONCE = 2 ** 16; // numbers, whose words are whole blocks of the stream

/** The sums Σ h − 6 · 2^16 of twelve 16-bit numbers: Irwin-Hall's nearly normal numbers. @returns {Int32Array} */
export function sums(stream, count) {
  const found = new Int32Array(count);
  for (let first = 0; first < count; first += AT_ONCE) {
    const end = Math.min(first + AT_ONCE, count), words = stream.words(6 * (end - first));
    for (let k = first, at = 0; k < end; k++) {
      let sum = -6 * 65536;
      for (let n = 0; n < 6; n++, at++) sum += (words[at] & 0xffff) + (words[at] >>> 16);
      found[k] = sum;
    }
  }
  return found;
}

/** The matrix of a role [rows, columns] in C order. @param {number} seed @param {string} role @param {Recipe} recipe @returns {Float32Array} */
export function randomWeights(seed, role, recipe) {
  const [rows, columns] = recipe.shape, size = rows * columns, { scheme, scale } = recipe;
  if (scheme === "orthogonal") return orthogonal(sums, new Stream(seed, role), rows, columns).map((x) => x * Math.fround(scale));
  const inputs = recipe.fan_in ?? rows;
  const [numerator, denominator] =
    scheme === "normal" ? [1, columns] : scheme.startsWith("xavier") ? [2, inputs + Math.floor(size / inputs)] : [2, inputs];
  const deviation = Math.fround(scale * Math.sqrt(numerator / denominator));
  if (scheme === "unsigned_constant") return new Float32Array(size).fill(deviation);
  const stream = new Stream(seed, role);
  if (NORMAL.includes(scheme)) {
    const constant = Math.fround(deviation * 2 ** -16), integers = sums(stream, size), drawn = new Float32Array(integers.buffer);
    for (let k = 0; k < size; k++) drawn[k] = integers[k] * constant;
    return drawn;
  }
  const words = stream.words(size), drawn = new Float32Array(words.buffer, 0, size); // each number in the place of its word
  if (UNIFORM.includes(scheme)) {
    const constant = Math.fround(Math.fround(scale * Math.sqrt((3 * numerator) / denominator)) * 2 ** -24);
    for (let k = 0; k < size; k++) drawn[k] = (2 * (words[k] >>> 8) - 16777216) * constant;
  } else {
    for (let k = 0; k < size; k++) drawn[k] = (1 - 2 * (words[k] >>> 31)) * deviation;
  }
  return drawn;
}

/** All matrices of a recipe, one after the other. @param {number} seed @param {Recipe} recipe @returns {Float32Array} */
export function draw(seed, recipe) {
  const [rows, columns] = recipe.shape, size = rows * columns;
  const roles = recipe.layers === null ? [recipe.role] : Array.from({ length: recipe.layers }, (_, layer) => `${recipe.role}#${layer}`);
  const whole = roles.length === 1 ? randomWeights(seed, roles[0], recipe) : new Float32Array(size * roles.length);
  if (roles.length > 1) roles.forEach((role, n) => whole.set(randomWeights(seed, role, recipe), n * size));
  if (recipe.zero_row !== null) {
    for (let n = 0; n < roles.length; n++) {
      const first = n * size + recipe.zero_row * columns;
      whole.fill(0, first, first + columns);
    }
  }
  return whole;
}

/** BLAKE2b (128 bits, hexadecimal) of weights. @param {Float32Array} weights */
export const checksum = (weights) => new Blake2b(16).update(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength)).hex();
