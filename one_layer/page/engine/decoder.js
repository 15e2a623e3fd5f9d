/** The decoder, token by token, as `one_layer.models.decoding`: a beam is a row, and no key or value is ever moved. */
import { Memory, attend, rotated } from "./attention.js";
import { linear } from "./linear.js";

const ROOM = 64; // places of memory at the beginning

export class Decoder {
  /** @param {import("./network.js").Network} network @param {Float32Array | null} encoded [source, d]; null for a decoder alone */
  constructor(network, encoded) {
    const { config } = network, d = config.d_model;
    this.network = network;
    this.table = config.task === "translation" && config.shared_embedding ? "shared/embedding" : "decoder/embedding";
    this.past = network.layers.decoder.map(() => new Memory(d, ROOM));
    this.sources = encoded && network.layers.decoder.map(({ prefix, index, settings }) => {
      if (settings.block !== "transformer") return null;
      const memory = new Memory(d, encoded.length / d);
      memory.add(...["key", "value"].map((name) => network.project(`${prefix}/cross_attention/${name}`, index, encoded)));
      return memory;
    });
    this.everywhere = Array.from({ length: encoded ? encoded.length / d : 0 }, (_, n) => n);
    this.written = 0;
    /** @type {number[][]} for each beam, where its past lies in the memories */
    this.rows = [[]];
  }

  /**
   * Takes the tokens of all beams at one place. @param {number[]} tokens @param {number} place from 0
   * @param {number[]} parents the beam, before this step, that each of these beams continues
   * @returns {{logits: Float32Array, attention: Float32Array[][] | null, depths: Float32Array[]}} logits [beams, vocabulary] of the next
   *   tokens; for each depth, the weights with which each beam attends to the source; and the output of each depth
   */
  step(tokens, place, parents) {
    const { network } = this, { config } = network, d = config.d_model, depths = [], attention = this.sources && [];
    this.rows = parents.map((parent, beam) => [...this.rows[parent], this.written + beam]);
    this.written += tokens.length;
    let x = network.embed(this.table, tokens, () => place);
    network.layers.decoder.forEach((layer, depth) => {
      const kept = attention && [];
      const self = (query, key, value) => {
        if (config.modern) [query, key].forEach((each) => rotated(each, config, () => place));
        this.past[depth].add(key, value);
        return attend(query, this.past[depth], config.heads, (row) => this.rows[row]);
      };
      x = network.layer(layer, x, self, this.sources?.[depth] ? (query) => attend(query, this.sources[depth], config.heads, () => this.everywhere, kept) : null);
      depths.push(x);
      if (kept?.length) attention.push(kept);
    });
    return { logits: this.logits(network.finish("decoder", x)), attention, depths };
  }

  /** The output table's logits of rows [rows, d]. @param {Float32Array} x @returns {Float32Array} */
  logits(x) {
    const table = this.network.matrix(this.table);
    return linear(x, x.length / table.columns, table.columns, this.network.product(this.table), table.rows);
  }
}
