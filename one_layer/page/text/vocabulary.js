// Vocabularies, as one_layer/data/text/vocabulary.py: tokens to ids and back.

import { BOS, EOS, PAD, UNK } from "./special_tokens.js";

export const SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"];
// As in SentencePiece: the tokens of bytes, and the letter that stands for a space.
export const BYTES = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
export const SPACE = "▁";

const UTF8 = new TextEncoder();

export class Vocabulary {
  // text: lines `token count`, as in fairseq's dict.txt
  constructor(text) {
    this.tokens = [...SPECIALS, ...linesOf(text).map(tokenOf)];
    this.ids = new Map(this.tokens.map((token, id) => [token, id]));
    if (this.ids.size < this.tokens.length) {
      const twice = this.tokens.find((token, id) => this.ids.get(token) !== id);
      throw new Error(`the vocabulary holds ${JSON.stringify(twice)} more than once; every token must occur exactly once`);
    }
    this.hasBytes = BYTES.every((token) => this.ids.has(token));
  }

  // The ids of a tokenised line, with eos at the end. A special token that the text itself contains is unknown.
  encode(line) {
    const found = [];
    for (const token of line.split(" ")) {
      if (!token) continue;
      const id = this.ids.get(token);
      if (id > UNK) found.push(id);
      else found.push(...(this.hasBytes ? this.#spelled(token) : [UNK]));
    }
    return [...found, EOS];
  }

  // One text becomes `<s> a </s>`, and two with a tab between become `<s> a </s> </s> b </s>`, as RoBERTa does.
  encodeTexts(line) {
    const [first, ...second] = line.split("\t").map((text) => this.encode(text));
    return [BOS, ...first, ...second.flatMap((text) => [EOS, ...text])];
  }

  // The tokens up to the first eos, with spaces between them, without bos and pad.
  decode(ids) {
    const end = ids.indexOf(EOS);
    const shown = (end < 0 ? ids : ids.slice(0, end)).filter((id) => id !== BOS && id !== PAD);
    return Array.from(shown, (id) => this.tokens[id]).join(" ");
  }

  // A token that is not in the vocabulary: its characters, and the bytes of those that are not in it either.
  #spelled(token) {
    return [...token].flatMap((letter) => {
      const id = this.ids.get(letter);
      return id > UNK ? [id] : Array.from(UTF8.encode(letter.replace(SPACE, " ")), (byte) => this.ids.get(BYTES[byte]));
    });
  }
}

// one_layer/data/text/lines.py: split_lines
function linesOf(text) {
  if (!text) return [];
  const lines = text.replace(/^\ufeff/, "").replace(/\n$/, "").split("\n");
  return lines.map((line) => line.replace(/\r$/, ""));
}

function tokenOf(line, index) {
  const space = line.lastIndexOf(" ");
  const token = line.slice(0, Math.max(space, 0));
  if (!/[^ ]/.test(token) || !/^[+-]?[0-9]{1,19}$/.test(line.slice(space + 1))) {
    throw new Error(`the vocabulary, line ${index + 1}: ${JSON.stringify(line.slice(0, 200))} is not of the form \`token count\``);
  }
  return token;
}
