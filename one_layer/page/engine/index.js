/** A ticket as the page and the tests use it: of any task, and with a look at what is inside. */
import { Decoder } from "./decoder.js";
import { ACTIVATIONS, largest, logSoftmax, norm } from "./functions.js";
import { linear } from "./linear.js";
import { flippedMask } from "./matrix.js";
import { Model } from "./model.js";
import { Network } from "./network.js";
import { Stream } from "./philox.js";
import { draw } from "./random.js";
import { Refused } from "./refused.js";
import { continued } from "./sampling.js";
import { EOS, UNK } from "../text/special_tokens.js";
import { textsOf } from "./settings.js";
import { countBits } from "./ticket.js";

const SHOWN = 5; // words after a depth
const CANDIDATES = 5; // tokens for each mask

/** The model of a ticket, as `Model.open` takes it. */
export const open = (bytes, textOf, draws) => PageModel.open(bytes, textOf, draws);

class PageModel extends Model {
  /** What the page says of the model. */
  describe() {
    const { config, seed, data, assets, arrays, bytes } = this.ticket, labels = this.task === "classification" ? this.labelNames() : undefined;
    return {
      task: this.task, seed, bytes, labels, texts: labels ? textsOf(data) : 1,
      cased: !assets.source.lowercase, source: assets.source.language, target: assets.target.language,
      matrices: this.matrices(), keep: this.#kept(), notes: this.text.notes ?? [],
      depths: config.family.stacks.map((stack) => config.stacks[stack].pattern.length).filter(Boolean).join("+"),
      masked: this.#bits(), trained: [...arrays.values()].reduce((sum, { values }) => sum + values.length, 0),
      hasDepthWords: this.task !== "classification",
    };
  }

  /** The answer to ids: translations, labels, or the fills of each `<mask>`. @param {number[]} ids @param {any} [options] */
  answer(ids, options = {}) {
    if (this.task === "masked_lm") return this.fills(ids);
    if (this.task === "causal_lm") throw new Refused("this model writes on; use generate");
    return super.answer(ids, options);
  }

  /** Which of these lines is too long to be read whole, as a sentence; "" if none is. @param {string[]} lines */
  unread(lines) {
    return lines.map((line) => this.text.unread(line)).find(Boolean) ?? "";
  }

  /** The logits of every token at some places. @param {number[]} ids @param {number[]} places @returns {Float32Array} [places, vocabulary] */
  maskLogits(ids, places) {
    const d = this.ticket.config.d_model, { output } = this.network.encode(ids), x = new Float32Array(places.length * d);
    places.forEach((place, row) => x.set(output.subarray(place * d, (place + 1) * d), row * d));
    return this.#headLogits(x);
  }

  #headLogits(x) {
    const { network } = this, d = this.ticket.config.d_model, table = network.matrix("encoder/embedding"), vector = (name) => network.vector(`head/dense/norm/${name}`, 0);
    const hidden = norm(ACTIVATIONS.gelu(network.project("head/dense", 0, x)), this.ticket.config, "affine", vector("scale"), vector("bias"));
    return linear(hidden, x.length / d, d, network.product("encoder/embedding"), table.rows, network.vector("head/output/bias", 0));
  }

  /** For each mask, the most probable tokens. @param {number[]} ids @returns {{text: string, probability: number}[][]} */
  fills(ids) {
    const mask = this.text.vocabulary("target").indexOf("<mask>"), places = ids.flatMap((id, place) => (id === mask ? [place] : []));
    const logits = this.maskLogits(ids, places), size = logits.length / Math.max(1, places.length);
    return places.map((_, row) => {
      const logP = logSoftmax(logits.subarray(row * size, (row + 1) * size));
      if (logP.some(Number.isNaN)) throw new Refused("the model's logits are not finite: this ticket cannot fill masks; use another");
      const best = largest(logP, CANDIDATES + UNK + 2).filter((id) => id > UNK && id !== mask).slice(0, CANDIDATES);
      return best.map((id) => ({ text: this.text.decode([id]), probability: Math.exp(logP[id]) }));
    });
  }

  /** Continues a text, token by token: yields what was written so far. @param {string} line @param {any} [options] @returns {Generator<string>} */
  *generate(line, options = {}) {
    const ids = [];
    for (const id of this.continuation(this.text.encode(line), options)) {
      ids.push(id);
      yield this.text.decode(ids);
    }
  }

  /** The same for ids. @param {number[]} ids @returns {Generator<number>} */
  continuation(ids, options = {}) {
    const { evaluation, data } = this.ticket, { temperature = evaluation.temperature } = options;
    const settings = { temperature, length: options.length ?? evaluation.sample_length };
    return continued(this.network, ids.slice(-data.block), data.block, settings, new Stream(options.seed ?? evaluation.sample_seed, "sample"));
  }

  /**
   * The matrices that are random or masked: role, shape [fan_in, fan_out] and depths, whether a bit turns a sign, and the share of the weights of
   * a depth that another one, which was drawn by chance, has a bit for too.
   */
  matrices() {
    const found = [...this.network.matrices.values()].filter(({ drawn, mask }) => drawn || mask);
    return found.map((matrix) => {
      const { role, rows, columns, drawn, mask } = matrix, depths = Array.from({ length: matrix.depths }, (_, depth) => depth);
      const bits = depths.reduce((sum, depth) => sum + countBits(this.mask(role, depth)), 0);
      return {
        role, shape: [rows, columns], drawn, own: matrix.layers !== null, depths, masked: Boolean(mask), signs: Boolean(mask) && this.#firstKind === "sign",
        chance: bits / (rows * columns * depths.length),
      };
    });
  }

  /** The mask of a depth, packed in C order, the lowest bit of a byte first; all ones where there is none. @returns {Uint8Array} */
  mask(role, depth = 0) {
    const { mask, rows, columns } = this.network.matrix(role), bytes = Math.ceil((rows * columns) / 8), bits = mask?.[this.#firstKind];
    if (!bits) return new Uint8Array(bytes).fill(255).fill(255 >> (8 * bytes - rows * columns), bytes - 1);
    const first = mask.layers === null ? 0 : depth * bytes;
    return bits.slice(first, first + bytes);
  }

  /** What the first bit of a weight says: whether it counts (`mask`) or its sign. */
  get #firstKind() {
    return this.ticket.config.maskKinds[0];
  }

  /** The random weights of a role and a depth in C order, or those that another seed would give. @returns {Float32Array} */
  weights(role, seed = this.ticket.seed, depth = 0) {
    const drawn = this.ticket.drawn.get(role);
    if (!drawn || seed === this.ticket.seed) return this.network.matrix(role).weights(depth).slice();
    const { layers } = drawn.recipe;
    return draw(seed, { ...drawn.recipe, layers: layers === null ? null : [Array.isArray(layers) ? layers[depth] : depth] });
  }

  /** For each two depths, the share of the weights of the first one that the second one keeps too. @returns {number[][]} */
  overlap(role) {
    const masks = Array.from({ length: this.network.matrix(role).depths }, (_, depth) => this.mask(role, depth));
    return masks.map((one) => masks.map((other) => countBits(one.map((byte, k) => byte & other[k])) / Math.max(1, countBits(one))));
  }

  /** The share of the bits of all depths in which the masks of another model are the same. @param {PageModel} other @param {string} role */
  agreement(other, role) {
    const { rows, columns, depths } = this.network.matrix(role), pairs = Array.from({ length: depths }, (_, depth) => [this.mask(role, depth), other.mask(role, depth)]);
    const differ = pairs.reduce((sum, [ours, theirs]) => sum + countBits(ours.map((byte, k) => byte ^ theirs[k])), 0);
    return 1 - differ / (rows * columns * depths);
  }

  /** The model with a share of its masks' trained bits flipped; a larger share of the same seed flips those of a smaller one too. @returns {PageModel} */
  flipped(share, seed = 1) {
    if (share === 0) return this;
    const kind = this.#firstKind, stream = (role) => new Stream(seed, `flip/${role}`);
    return this.#changed((matrix) => (matrix.mask ? matrix.with({ mask: flippedMask(matrix.mask, kind, share, stream(matrix.role)) }) : matrix));
  }

  /** The model with the same masks over the random weights of another seed. @returns {PageModel} */
  reseeded(seed) {
    if (seed === this.ticket.seed) return this;
    const { drawn } = this.ticket;
    return this.#changed((matrix) => (matrix.drawn ? matrix.with({ values: draw(seed, drawn.get(matrix.role).recipe) }) : matrix));
  }

  #changed(change) {
    const { config, arrays, matrices } = this.network;
    const changed = new Map([...matrices].map(([role, matrix]) => [role, change(matrix)]));
    return new PageModel(this.ticket, new Network(config, changed, arrays), this.text);
  }

  /**
   * What the model would say at each place if it ended after a depth: each depth's output through the output table. For a translation, the
   * places are those of its best translation; `right` are the answer's own tokens. @param {string} line
   * @returns {{pieces: string[], depths: {token: string, right: boolean, probability: number}[][][]}}
   */
  depthWords(line) {
    const ids = this.text.encode(line);
    const [answer, depths, logits] = this.task === "masked_lm" ? this.#encoderDepths(ids) : this.#decoderDepths(ids), word = (id) => this.text.shown("target", [id])[0];
    const best = (x) => {
      const all = logits(x), size = all.length / answer.length;
      return answer.map((_, row) => {
        const logP = logSoftmax(all.subarray(row * size, (row + 1) * size));
        return largest(logP, SHOWN).map((id) => ({ token: word(id), right: id === answer[row], probability: Math.exp(logP[id]) }));
      });
    };
    return { pieces: this.text.shown("target", answer), depths: depths.map(best) };
  }

  #decoderDepths(ids) {
    const translating = this.task === "translation", { network } = this, d = this.ticket.config.d_model;
    const answer = translating ? this.translations(ids, { count: 1 })[0].ids : ids.slice(1);
    const decoder = new Decoder(network, translating && ids.length > 1 ? network.encode(ids).output : null), depths = network.layers.decoder.map(() => new Float32Array(answer.length * d));
    if (!translating || ids.length > 1) {
      [EOS, ...answer].slice(0, answer.length).forEach((token, place) => decoder.step([token], place, [0]).depths.forEach((x, depth) => depths[depth].set(x, place * d)));
    }
    return [answer, depths, (x) => decoder.logits(network.finish("decoder", x))];
  }

  #encoderDepths(ids) {
    const { depths } = this.network.encode(ids);
    return [ids, depths, (x) => this.#headLogits(this.network.finish("encoder", x))];
  }

  /** How many weights the masks are over. */
  #bits() {
    return [...this.ticket.masks.values()].reduce((sum, { shape, layers }) => sum + shape[0] * shape[1] * (layers ?? 1), 0);
  }

  #kept() {
    const masks = [...this.ticket.masks.values()].filter(({ mask }) => mask), kept = masks.reduce((sum, { mask }) => sum + countBits(mask), 0);
    const weights = masks.reduce((sum, { shape, layers }) => sum + shape[0] * shape[1] * (layers ?? 1), 0);
    return masks.length ? kept / weights : 1;
  }
}
