/**
 * Random weights that depend only on a seed, a role, a shape and a scheme: bit for bit those of `one_layer.initializers`.
 *
 * Each element is an integer of NumPy's Philox stream, converted to float32 once and multiplied by one float32 constant.
 */
import { Blake2b } from "./blake2b.js";
import { orthogonal } from "./orthogonal.js";

/** @typedef {{role: string, shape: [number, number], scheme: string, scale: number, fan_in: number | null,
 *   layers: number | number[] | null, zero_row: number | null, checksum: string}} Recipe */

const NORMAL = ["kaiming_normal", "xavier_normal", "normal"];
const UNIFORM = ["kaiming_uniform", "xavier_uniform"];
export const SCHEMES = [...NORMAL, ...UNIFORM, "signed_constant", "unsigned_constant", "orthogonal"];

const ROUNDS = 10;
const MULTIPLIERS = [0xd2e7470ee14c6c93n, 0xca5a826395121157n];
const WEYL = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];
const [ML0, MH0, ML1, MH1] = MULTIPLIERS.flatMap((m) => [Number(m & 0xffffffffn), Number(m >> 32n)]);

/** NumPy's Philox (Salmon et al. 2011, Philox4x64-10) of a role, as 32-bit words: the lower half of each 64-bit word first. */
export class Stream {
  /** @param {number} seed @param {string} role */
  constructor(seed, role) {
    const key = new DataView(new Blake2b(16).update(new TextEncoder().encode(`${seed}/${role}`)).digest().slice().buffer);
    this.keys = new Int32Array(4 * ROUNDS); // of each round: two 64-bit words
    for (let round = 0; round < ROUNDS; round++) {
      for (const half of [0, 1]) {
        const word = BigInt.asUintN(64, key.getBigUint64(8 * half, true) + BigInt(round) * WEYL[half]);
        this.keys[4 * round + 2 * half] = Number(word & 0xffffffffn);
        this.keys[4 * round + 2 * half + 1] = Number(word >> 32n);
      }
    }
    this.counter = 0;
  }

  /** The next words; every call begins with a new block of eight. @param {number} count @returns {Uint32Array} */
  words(count) {
    const found = new Uint32Array(Math.ceil(count / 8) * 8);
    for (let at = 0; at < found.length; at += 8) philox(++this.counter, this.keys, found, at);
    return found.subarray(0, count);
  }
}

/** Writes the block of eight words with this number (below 2^32) to `out[at ...]`. */
function philox(counter, keys, out, at) {
  let al = counter | 0, ah = 0, bl = 0, bh = 0, cl = 0, ch = 0, dl = 0, dh = 0;
  for (let k = 0; k < 4 * ROUNDS; k += 4) {
    // The 128-bit products of a with the first multiplier, and of c with the second: low word p, high word q.
    const a0 = al >>> 0, a1 = ah >>> 0, c0 = cl >>> 0, c1 = ch >>> 0;
    const pl = Math.imul(al, ML0), p0 = pl >>> 0;
    const x0 = high(a0, ML0, p0);
    const xl = Math.imul(ah, ML0) >>> 0, xh = high(a1, ML0, xl);
    const yl = Math.imul(al, MH0) >>> 0, yh = high(a0, MH0, yl);
    const zl = Math.imul(ah, MH0) >>> 0, zh = high(a1, MH0, zl);
    const pm = x0 + xl + yl; // below 3 · 2^32, exact
    const ph = pm | 0;
    const qm = xh + yh + zl + (pm - (ph >>> 0)) / 4294967296;
    const ql = qm | 0;
    const qh = (zh + (qm - (ql >>> 0)) / 4294967296) | 0;
    const rl = Math.imul(cl, ML1), r0 = rl >>> 0;
    const u0 = high(c0, ML1, r0);
    const ul = Math.imul(ch, ML1) >>> 0, uh = high(c1, ML1, ul);
    const vl = Math.imul(cl, MH1) >>> 0, vh = high(c0, MH1, vl);
    const wl = Math.imul(ch, MH1) >>> 0, wh = high(c1, MH1, wl);
    const rm = u0 + ul + vl;
    const rh = rm | 0;
    const sm = uh + vh + wl + (rm - (rh >>> 0)) / 4294967296;
    const sl = sm | 0;
    const sh = (wh + (sm - (sl >>> 0)) / 4294967296) | 0;
    al = sl ^ bl ^ keys[k];
    ah = sh ^ bh ^ keys[k + 1];
    cl = ql ^ dl ^ keys[k + 2];
    ch = qh ^ dh ^ keys[k + 3];
    bl = rl;
    bh = rh;
    dl = pl;
    dh = ph;
  }
  out[at] = al;
  out[at + 1] = ah;
  out[at + 2] = bl;
  out[at + 3] = bh;
  out[at + 4] = cl;
  out[at + 5] = ch;
  out[at + 6] = dl;
  out[at + 7] = dh;
}

/** The upper 32 bits of a · b, of which `low` are the lower ones: a float64 product errs by less than 2^11, far below 2^32. */
function high(a, b, low) {
  return ((a * b - low) / 4294967296 + 0.5) >>> 0;
}

/** The sums Σ h − 6 · 2^16 of twelve 16-bit numbers: Irwin-Hall's nearly normal numbers. @returns {Int32Array} */
export function sums(stream, count) {
  const words = stream.words(6 * count), found = new Int32Array(count);
  for (let k = 0, at = 0; k < count; k++) {
    let sum = -6 * 65536;
    for (let n = 0; n < 6; n++, at++) sum += (words[at] & 0xffff) + (words[at] >>> 16);
    found[k] = sum;
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
  const drawn = new Float32Array(size);
  if (scheme === "unsigned_constant") return drawn.fill(deviation);
  const stream = new Stream(seed, role);
  if (NORMAL.includes(scheme)) {
    const constant = Math.fround(deviation * 2 ** -16), integers = sums(stream, size);
    for (let k = 0; k < size; k++) drawn[k] = integers[k] * constant;
    return drawn;
  }
  const words = stream.words(size);
  if (UNIFORM.includes(scheme)) {
    const constant = Math.fround(Math.fround(scale * Math.sqrt((3 * numerator) / denominator)) * 2 ** -24);
    for (let k = 0; k < size; k++) drawn[k] = (2 * (words[k] >>> 8) - 16777216) * constant;
  } else {
    for (let k = 0; k < size; k++) drawn[k] = words[k] >>> 31 ? -deviation : deviation;
  }
  return drawn;
}

/** The numbers of the layers that a recipe draws; none for one matrix. @param {Recipe} recipe @returns {number[]} */
export const layersOf = ({ layers }) => (Array.isArray(layers) ? layers : Array.from({ length: layers ?? 0 }, (_, n) => n));

/** All matrices of a recipe, one after the other. @param {number} seed @param {Recipe} recipe @returns {Float32Array} */
export function draw(seed, recipe) {
  const [rows, columns] = recipe.shape, size = rows * columns;
  const roles = recipe.layers === null ? [recipe.role] : layersOf(recipe).map((layer) => `${recipe.role}#${layer}`);
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
