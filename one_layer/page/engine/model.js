/** A ticket as a translator or a classifier: text in, text out. index.js has what the page needs besides. */
import { Decoder } from "./decoder.js";
import { ACTIVATIONS, logSoftmax } from "./functions.js";
import { Network } from "./network.js";
import { Refused } from "./refused.js";
import { EOS, UNK } from "../text/special_tokens.js";
import { beamSearch } from "./search.js";
import { openTicket } from "./ticket.js";

export class Model {
  /** @param {import("./ticket.js").Ticket} ticket @param {Network} network @param {any} text */
  constructor(ticket, network, text) {
    Object.assign(this, { ticket, network, text, task: ticket.task });
  }

  /**
   * The model of a ticket. Throws an Error of one sentence for what is no whole ticket. @param {Uint8Array} bytes
   * @param {(assets: any) => any} textOf makes what encodes and decodes text, for instance that of `text/index.js` with its tables
   * @param {Map<string, Float32Array>} [draws] what tickets that were opened before have drawn
   */
  static open(bytes, textOf, draws = new Map()) {
    const ticket = openTicket(bytes, draws);
    return new this(ticket, Network.of(ticket), textOf(ticket.assets));
  }

  /** The answer to a line. @param {string} line @param {any} [options] */
  run(line, options = {}) {
    return this.answer(this.text.encode(line), options);
  }

  /** The same for ids: translations, or labels. @param {number[]} ids @param {any} [options] */
  answer(ids, options = {}) {
    return this.task === "translation" ? this.translations(ids, options) : this.labels(ids);
  }

  /** The best translations, best first (`one_layer.tasks.translation.generate`). @param {number[]} ids that end in eos */
  translations(ids, { count = Infinity, beam = this.ticket.evaluation.beam } = {}) {
    const { max_length_a: a, max_length_b: b, length_penalty: lengthPenalty } = this.ticket.evaluation;
    if (ids.length <= 1) return [{ text: "", score: 0, ids: [EOS], tokens: ["</s>"], sourceTokens: ["</s>"], attention: [[1]], attentions: [[[1]]] }];
    const decoder = new Decoder(this.network, this.network.encode(ids).output);
    const found = beamSearch(decoder, { beam, limit: Math.trunc(a * ids.length + b), lengthPenalty });
    return found.slice(0, count).map(({ tokens, score, attention }) => ({
      text: this.text.decode(tokens), score, ids: tokens,
      tokens: this.text.shown("target", tokens), sourceTokens: this.text.shown("source", ids),
      attention: attention.map((depths) => Array.from(depths.at(-1) ?? [])), // of the last depth
      attentions: attention.map((depths) => depths.map((weights) => Array.from(weights))),
    }));
  }

  /** Every label with its probability, in the order of the labels. @param {number[]} ids */
  labels(ids) {
    const logP = logSoftmax(this.labelLogits(ids));
    if (logP.some(Number.isNaN)) throw new Refused("the model's logits are not finite: this ticket cannot classify; use another");
    return this.labelNames().map((label, k) => ({ label, probability: Math.exp(logP[k]) }));
  }

  /** @param {number[]} ids @returns {Float32Array} [labels] */
  labelLogits(ids) {
    const first = this.network.encode(ids).output.subarray(0, this.ticket.config.d_model);
    return this.network.project("head/output", 0, ACTIVATIONS.tanh(this.network.project("head/dense", 0, first)));
  }

  /** @returns {string[]} */
  labelNames() {
    return this.text.vocabulary("target").slice(UNK + 1);
  }
}
