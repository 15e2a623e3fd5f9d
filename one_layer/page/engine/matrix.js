/**
 * A matrix of the model: random numbers W that are kept once, and a mask of one bit a weight for each depth (paper A, section 3).
 *
 * The network multiplies with W ⊙ M, which is made when a depth is first used, with the outputs as rows, and with its gains and its adapter, if it has
 * any; a large network multiplies with W and the bits of M where that is possible.
 */

import { isInRoom } from "./room.js";

const get = (bits, at) => (bits[at >>> 3] >>> (at & 7)) & 1;
const BITS = 32; // in the place of a number

export class Matrix {
  /**
   * @param {string} role @param {number} rows fan_in, or the tokens of a table @param {number} columns
   * @param {Float32Array} values [rows, columns], or one such matrix for each of `layers` @param {number | null} layers
   * @param {import("./ticket.js").Mask | null} mask @param {boolean} rescaled `model.dynamic_scale` @param {boolean} drawn from the seed
   * @param {(import("./ticket.js").Values | null)[]} beside gains [depths, columns], and an
   *   adapter's two matrices [depths, rank, rows] and [depths, rank, columns], as far as the model has them
   */
  constructor(role, rows, columns, values, layers, mask, rescaled, drawn, beside = [null, null, null]) {
    Object.assign(this, { role, rows, columns, values, layers, mask, rescaled, drawn, beside });
    this.isTable = /embedding$|^(encoder|decoder)\/position$/.test(role);
    this.depths = Math.max(layers ?? 1, mask?.layers ?? 1, ...beside.map((each) => each?.shape[0] ?? 1));
    this.products = [];
    [this.room, this.turned, this.bits] = [null, null, []]; // W as [columns, rows], and the bits of its masks, in one memory
  }

  /** Whether the depths differ in nothing but one mask of W, so that product.wat can multiply with W and the mask's bits. */
  get isMasked() {
    const { mask, rows, columns, beside } = this, one = mask?.mask && !mask.sign && !this.rescaled && !beside.some(Boolean);
    return Boolean(one) && !this.isTable && this.layers === null && this.depths > 1 && rows % 8 === 0 && columns % 16 === 0;
  }

  /** The numbers of the arrays that `factors` asks room for. @param {boolean} large @returns {number[]} */
  sizes(large) {
    const size = this.rows * this.columns;
    return large && this.isMasked ? [size, ...Array(this.depths).fill(size / BITS)] : Array(this.depths).fill(size);
  }

  /**
   * What `linear` multiplies with at a depth: W ⊙ M, or, in a `large` network, W and the bits of M, whose depths need less memory together.
   * @param {number} depth @param {(size: number) => Float32Array} room see room.js @param {boolean} large
   * @returns {[Float32Array, Float32Array | null]}
   */
  factors(depth, room, large) {
    if (large && this.isMasked && isInRoom((this.room ??= room)(0))) {
      const turned = (this.turned ??= this.#turned(this.room(this.rows * this.columns)));
      const bits = (this.bits[depth] ??= this.#turnedBits(depth, this.room(turned.length / BITS)));
      if (isInRoom(turned) && bits.buffer === turned.buffer) return [turned, bits];
    }
    return [this.product(depth, room), null];
  }

  /** @param {Float32Array} found gets W as [columns, rows] */
  #turned(found) {
    const { rows, columns, values } = this;
    for (let row = 0, k = 0; row < rows; row++) for (let column = 0; column < columns; column++, k++) found[column * rows + row] = values[k];
    return found;
  }

  /** @param {Float32Array} found zeros; gets the bits of [columns, rows] as product.wat has them */
  #turnedBits(depth, found) {
    const { rows, columns } = this, { bits } = this.#packed(depth), words = new Uint32Array(found.buffer, found.byteOffset, found.length);
    for (let row = 0, k = 0; row < rows; row++) {
      for (let column = 0, at = row; column < columns; column++, k++, at += rows) {
        words[(at >>> 7) * 4 + (at & 3)] |= get(bits, k) << (31 - ((at >>> 2) & 31));
      }
    }
    return found;
  }

  /** The same with other numbers or another mask. */
  with({ values = this.values, mask = this.mask }) {
    return new Matrix(this.role, this.rows, this.columns, values, this.layers, mask, this.rescaled, this.drawn, this.beside);
  }

  /** W of a depth in C order [rows, columns]. @returns {Float32Array} */
  weights(depth = 0) {
    const size = this.rows * this.columns, first = this.layers === null ? 0 : depth * size;
    return this.values.subarray(first, first + size);
  }

  /** M of a depth in C order: 1, 0 and -1. @returns {Int8Array} */
  entries(depth = 0) {
    const size = this.rows * this.columns, found = new Int8Array(size).fill(1);
    if (this.mask === null) return found;
    const { bits, signs } = this.#packed(depth);
    for (let k = 0; k < size; k++) found[k] = (bits ? get(bits, k) : 1) * (signs && get(signs, k) ? -1 : 1);
    return found;
  }

  /** The bits of a depth's mask and of its signs, as far as it has them. */
  #packed(depth) {
    const { mask, sign, layers } = this.mask ?? { mask: null, sign: null, layers: null }, bytes = Math.ceil((this.rows * this.columns) / 8);
    const own = (all) => all && all.subarray((layers === null ? 0 : depth) * bytes).subarray(0, bytes);
    return { bits: own(mask), signs: own(sign) };
  }

  /**
   * W ⊙ M of a depth, [outputs, inputs]: a table as it is, and other matrices transposed.
   * @param {(size: number) => Float32Array} room see room.js @returns {Float32Array}
   */
  product(depth, room) {
    const place = this.depths > 1 ? depth : 0;
    return (this.products[place] ??= this.#multiplied(place, room(this.rows * this.columns)));
  }

  /** @param {Float32Array} found zeros; gets the product @returns {Float32Array} */
  #multiplied(depth, found) {
    const { rows, columns } = this, weights = this.weights(depth);
    if (this.mask === null && this.isTable) {
      found.set(weights);
      return found;
    }
    const [ofColumn, adapterIn, adapterOut] = this.beside;
    const { bits, signs } = this.#packed(depth);
    const factors = this.rescaled && bits ? this.#factors(bits) : null;
    for (let row = 0, k = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, k++) {
        const times = (bits ? get(bits, k) : 1) * (signs ? 1 - 2 * get(signs, k) : 1);
        const value = Math.fround(weights[k] * times); // without a branch, because bits cannot be foreseen
        const scaled = factors ? Math.fround(value * factors[this.isTable ? column : row]) : value;
        found[this.isTable ? k : column * rows + row] = ofColumn ? scaled * ofColumn.values[depth * columns + column] : scaled;
      }
    }
    for (let r = 0, rank = adapterIn?.shape[1] ?? 0; r < rank; r++) {
      const inputs = adapterIn.values.subarray((depth * rank + r) * rows), outputs = adapterOut.values.subarray((depth * rank + r) * columns);
      for (let column = 0; column < columns; column++) for (let row = 0; row < rows; row++) found[column * rows + row] += inputs[row] * outputs[column];
    }
    return found;
  }

  /** √(n / kept), counted along the outputs of each input, or along the tokens of each column of a table. */
  #factors(bits) {
    const counts = new Float64Array(this.isTable ? this.columns : this.rows), along = this.isTable ? this.rows : this.columns;
    for (let k = 0; k < this.rows * this.columns; k++) counts[this.isTable ? k % this.columns : Math.floor(k / this.columns)] += get(bits, k);
    return Float32Array.from(counts, (kept) => (kept ? Math.sqrt(Math.fround(along / kept)) : 0));
  }
}

/**
 * A mask with some bits of a kind flipped, every one with the chance `share`.
 * @param {import("./ticket.js").Mask} mask @param {"mask" | "sign"} kind @param {number} share @param {import("./philox.js").Stream} stream
 */
export function flippedMask(mask, kind, share, stream) {
  const size = mask.shape[0] * mask.shape[1], bytes = Math.ceil(size / 8), bits = mask[kind].slice();
  const below = share * 2 ** 32;
  for (let layer = 0; layer < (mask.layers ?? 1); layer++) {
    const words = stream.words(size);
    for (let k = 0; k < size; k++) {
      if (words[k] < below) bits[layer * bytes + (k >>> 3)] ^= 1 << (k & 7);
    }
  }
  return { ...mask, [kind]: bits };
}
