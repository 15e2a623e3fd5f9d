/**
 * The network of a ticket: its matrices by role, and what its layers compute (`one_layer.layers.blocks`, `one_layer.layers.stack`).
 *
 * A layer of depth l is the one random layer of its stack under the masks of depth l.
 */
import { Memory, attend, rotated } from "./attention.js";
import { ACTIVATIONS, norm, sinusoid } from "./functions.js";
import { linear } from "./linear.js";
import { Matrix } from "./matrix.js";
import { positionRole, prefixOf } from "./parts.js";
import { Refused } from "./refused.js";
import { roomFor } from "./room.js";

const FIRST_PLACE = 2; // of a token: a pad has 1
const LARGE = 2 ** 22; // numbers of all products, which a processor's cache does not hold

/** @typedef {{stack: string, prefix: string, index: number, settings: import("./config.js").LayerSettings}} Layer one depth of a stack */

export class Network {
  /** @param {any} config @param {Map<string, Matrix>} matrices by role @param {Map<string, import("./ticket.js").Values>} arrays by role and leaf */
  constructor(config, matrices, arrays) {
    Object.assign(this, { config, matrices, arrays });
    const all = [...matrices.values()], most = (of) => Math.max(...all.map(of));
    this.large = all.reduce((sum, { rows, columns, depths }) => sum + rows * columns * depths, 0) > LARGE;
    const [widest, longest] = [most(({ isTable, rows, columns }) => (isTable ? columns : rows)), most(({ rows, columns }) => Math.max(rows, columns))];
    this.room = roomFor(all.flatMap((matrix) => matrix.sizes(this.large)), widest, longest);
    this.layers = Object.fromEntries(config.family.stacks.map((stack) => [stack, layersOf(config, stack)]));
  }

  /** @param {import("./ticket.js").Ticket} ticket @returns {Network} */
  static of({ config, masks, drawn, arrays }) {
    const matrices = new Map(), rescaled = config.dynamic_scale;
    const besideOf = (role) => ["column_gain", "adapter_in", "adapter_out"].map((leaf) => arrays.get(`${role}/${leaf}`) ?? null);
    const put = (role, shape, values, isDrawn) => {
      const [rows, columns] = shape.slice(-2), layers = shape.length > 2 ? shape[0] : null;
      matrices.set(role, new Matrix(role, rows, columns, values, layers, masks.get(role) ?? null, rescaled, isDrawn, besideOf(role)));
    };
    for (const [role, { recipe, weights }] of drawn) {
      const layers = Array.isArray(recipe.layers) ? recipe.layers.length : recipe.layers;
      put(role, layers === null ? recipe.shape : [layers, ...recipe.shape], weights, true);
    }
    for (const [name, { shape, values }] of arrays) if (name.endsWith("/kernel")) put(name.slice(0, -"/kernel".length), shape, values, false);
    return new Network(config, matrices, arrays);
  }

  /** The matrix of a role. @param {string} role @returns {Matrix} */
  matrix(role) {
    return /** @type {Matrix} */ (this.matrices.get(role));
  }

  /** The part of a bias or a scale that belongs to one depth; null if the model has none. @returns {Float32Array | null} */
  vector(name, index) {
    const found = this.arrays.get(name);
    if (found === undefined) return null;
    const size = found.shape.at(-1);
    return found.shape.length > 1 ? found.values.subarray(index * size, (index + 1) * size) : found.values;
  }

  /** W ⊙ M of a role at a depth. @param {string} role @param {number} index @returns {Float32Array} */
  product(role, index = 0) {
    return this.matrix(role).product(index, this.room);
  }

  /** x W + b. @param {string} role @param {number} index of the depth @param {Float32Array} x @returns {Float32Array} */
  project(role, index, x) {
    const matrix = this.matrix(role), [weights, bits] = matrix.factors(index, this.room, this.large);
    return linear(x, x.length / matrix.rows, matrix.rows, weights, matrix.columns, this.vector(`${role}/bias`, index), bits);
  }

  /** LayerNorm of a role. @param {string} role @param {string} kind @param {number} index @param {Float32Array} x @returns {Float32Array} */
  normalise(role, kind, index, x) {
    return norm(x, this.config, kind, this.vector(`${role}/norm/scale`, index), this.vector(`${role}/norm/bias`, index));
  }

  /** The inputs of the first layer. @param {string} role of the table @param {ArrayLike<number>} ids @param {(row: number) => number} place from 0 */
  embed(role, ids, place) {
    const { config } = this, d = config.d_model, table = this.product(role), x = new Float32Array(ids.length * d);
    const places = config.positionRows ? this.product(positionRole(config)) : null, scale = places ? 1 : Math.fround(Math.sqrt(d));
    for (let row = 0; row < ids.length; row++) {
      const at = FIRST_PLACE + place(row);
      const added = places ? places.subarray(at * d, (at + 1) * d) : config.modern ? null : sinusoid(at, d);
      for (let k = 0; k < d; k++) x[row * d + k] = Math.fround(table[ids[row] * d + k] * scale) + (added ? added[k] : 0);
    }
    return config.embedding_norm ? this.normalise("encoder/embedding", config.norm, 0, x) : x;
  }

  /**
   * The output of one layer. @param {Layer} layer @param {Float32Array} x [rows, d]
   * @param {(query: Float32Array, key: Float32Array, value: Float32Array) => Float32Array} self attends to the places of the same text
   * @param {((query: Float32Array) => Float32Array) | null} cross attends to the source
   */
  layer({ prefix, index, settings }, x, self, cross = null) {
    const project = (name, y) => this.project(`${prefix}/${name}`, index, y);
    const add = (name, block) => {
      const pre = this.config.norm_position === "pre", normalise = (y) => this.normalise(`${prefix}/${name}`, settings.norm, index, y);
      const y = block(pre ? normalise(x) : x);
      for (let k = 0; k < y.length; k++) y[k] += x[k];
      x = pre ? y : normalise(y);
    };
    if (settings.block === "transformer") {
      add("self_attention", (y) => {
        const [query, key, value] = ["query", "key", "value"].map((name) => project(`self_attention/${name}`, y));
        return project("self_attention/output", self(query, key, value));
      });
      if (cross) add("cross_attention", (y) => project("cross_attention/output", cross(project("cross_attention/query", y))));
    }
    add("ffn", (y) => project("ffn/out", this.#hidden(project, y)));
    return x;
  }

  #hidden(project, y) {
    const inner = project("ffn/in", y);
    if (!this.config.modern) return ACTIVATIONS[this.config.activation](inner);
    const gate = ACTIVATIONS.silu(project("ffn/gate", y));
    for (let k = 0; k < inner.length; k++) inner[k] *= gate[k];
    return inner;
  }

  /** The norm after the last layer, which pre-norm models have. @param {string} stack @param {Float32Array} x */
  finish(stack, x) {
    return this.config.norm_position === "pre" ? this.normalise(`${stack}/final`, this.config.norm, 0, x) : x;
  }

  /** The encoder's output for the ids of one text, and the output of each depth. @param {ArrayLike<number>} ids */
  encode(ids) {
    const { config } = this, d = config.d_model, everywhere = Array.from({ length: ids.length }, (_, n) => n), depths = [];
    let x = this.embed(config.task === "translation" && config.shared_embedding ? "shared/embedding" : "encoder/embedding", ids, (row) => row);
    for (const layer of this.layers.encoder) {
      x = this.layer(layer, x, (query, key, value) => {
        if (config.modern) [query, key].forEach((each) => rotated(each, config, (row) => row));
        const memory = new Memory(d, ids.length);
        memory.add(key, value);
        return attend(query, memory, config.heads, () => everywhere);
      });
      depths.push(x);
    }
    return { output: this.finish("encoder", x), depths };
  }
}

/** @returns {Layer[]} */
function layersOf(config, stack) {
  const { pattern, groups } = config.stacks[stack], seen = {};
  return [...pattern].map((letter) => {
    const group = groups.find((each) => each.letter === letter), index = (seen[letter] = (seen[letter] ?? -1) + 1);
    if (["gru", "conv"].includes(group.layer.block)) {
      throw new Refused(`its reservoirs are of the kind model.reservoir=${group.layer.block}, which the page cannot compute; use the program`);
    }
    return { stack, prefix: prefixOf(stack, group), index, settings: group.layer };
  });
}

