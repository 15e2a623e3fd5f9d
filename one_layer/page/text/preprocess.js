// Raw text to the model's tokens and back, as one_layer/data/text/preprocess.py: Moses' tokens, lower case, byte pair encoding.

import * as byteLevel from "./byte_level.js";
import * as metaspace from "./metaspace.js";
import * as moses from "./moses.js";
import { split } from "./python.js";
import * as subwordNmt from "./subword_nmt.js";

const SPLITTERS = { "subword-nmt": subwordNmt.splitter, "byte-level": byteLevel.splitter, metaspace: metaspace.splitter };
const INVERSES = { "subword-nmt": subwordNmt.join, "byte-level": byteLevel.join, sentencepiece: metaspace.join };
const INVERSE = /^(none|moses|(subword-nmt|byte-level|sentencepiece)(,moses)?)$/;
// Han, kana, their punctuation and full-width forms. Between two of them, no space is ever meant.
const EAST_ASIAN = "[\\u2e80-\\u30ff\\u31f0-\\u31ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uff00-\\uffef\\u{20000}-\\u{3fffd}]";
const INNER_SPACE = new RegExp(`(?<=${EAST_ASIAN}) +(?=${EAST_ASIAN})`, "gu");

// The steps of one side. Its fields have the names of `Preprocessing` in Python, and their values where a ticket lacks them.
export class Preprocessing {
  constructor(fields, vocabulary, tables) {
    Object.assign(this, { normalize: true, split_hyphens: false, bpe_kind: "subword-nmt", pairs: false, spaced: true }, fields);
    if (!(this.bpe_kind in SPLITTERS)) throw new Error(`the ticket's bpe_kind ${JSON.stringify(this.bpe_kind)} is unknown`);
    if (this.tokenize && this.bpe_kind === "metaspace") throw new Error("the ticket has metaspace pieces of tokenised text, which do not fit");
    if (this.bpe_kind === "metaspace" && !vocabulary.hasBytes) {
      throw new Error("a vocabulary of metaspace pieces lacks a token of the bytes <0x00> to <0xFF>");
    }
    const knows = this.tokenize || this.codes !== null || this.bpe_kind === "metaspace";
    this.inverse ??= knows ? "" : "subword-nmt,moses";
    if (this.inverse && !INVERSE.test(this.inverse)) throw new Error(`the ticket's inverse ${JSON.stringify(this.inverse)} is unknown`);
    this.undone = this.inverse ? this.inverse.split(",") : this.#reversed();
    this.segment = this.codes === null ? (line) => line : SPLITTERS[this.bpe_kind](this.codes);
    this.tokens = this.tokenize ? moses.tokenizer(this, tables) : (line) => line;
    this.plain = this.undone.includes("moses") ? moses.detokenizer(this, tables) : (line) => line;
  }

  // A raw line to tokens with single spaces between them.
  apply(line) {
    return this.#eachText((text) => this.segment(this.words(text)), line);
  }

  // The first half: tokenises and lower-cases one text.
  words(text) {
    if (this.bpe_kind === "metaspace") return metaspace.words(this.#cased(text));
    if (this.tokenize) text = this.spaced ? this.tokens(text) : split(text).join(" ");
    return this.#cased(text);
  }

  // A line of tokens to plain text.
  undo(line) {
    const joined = this.undone.find((name) => name in INVERSES);
    const words = joined ? INVERSES[joined](line) : line;
    return this.undone.includes("moses") && !this.spaced ? words.replace(INNER_SPACE, "") : this.plain(words);
  }

  #cased(text) {
    return this.lowercase ? text.toLowerCase() : text;
  }

  #eachText(step, line) {
    return this.pairs ? line.split("\t").map(step).join("\t") : step(line);
  }

  #reversed() {
    if (this.bpe_kind === "metaspace") return ["sentencepiece"];
    const found = this.codes ? [this.bpe_kind] : this.tokenize ? ["subword-nmt"] : [];
    return this.tokenize ? [...found, "moses"] : found;
  }
}
