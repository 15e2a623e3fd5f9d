// The units of a language model's text, as one_layer/data/text/units.py: bytes, characters, or pieces of byte-level BPE.

import * as byteLevel from "./byte_level.js";
import { UNK } from "./special_tokens.js";
import { BYTES } from "./vocabulary.js";

const UTF8 = new TextEncoder();
const FIRST = UNK + 1; // the ids before it are the specials
const MASK = "<mask>";

// Returns {ids(text), text(ids)} of the unit `bytes`, `characters` or `bpe`. Special tokens have no text.
export function unitOf(name, vocabulary, merges) {
  const tokens = (ids) => Array.from(ids, (id) => (id < FIRST ? "" : vocabulary.tokens[id])).filter((token) => token !== MASK);
  const known = (token) => {
    const id = vocabulary.ids.get(token);
    return id >= FIRST && token !== MASK ? id : UNK; // text cannot contain specials
  };
  if (name === "characters") return characters(vocabulary, tokens);
  const text = (ids) => byteLevel.join(tokens(ids).join(""));
  if (name === "bytes") {
    checkBytes(vocabulary);
    return { ids: (line) => Array.from(UTF8.encode(line), (byte) => byte + FIRST), text };
  }
  const pieces = byteLevel.piecesOf(merges ?? "");
  return { ids: (line) => (line.match(/[^\n]*\n|[^\n]+/g) ?? []).flatMap(pieces).map(known), text };
}

// A token is a character (a code point) of the training text; others are unknown.
function characters(vocabulary, tokens) {
  const ids = new Map();
  vocabulary.tokens.forEach((token, id) => id >= FIRST && ids.set(characterOf(token), id));
  return {
    ids: (line) => Array.from(line, (character) => ids.get(character) ?? UNK),
    text: (found) => tokens(found).map(characterOf).join(""),
  };
}

// The ids of a text for people, piece by piece. `kind`: byte-level, characters, or another one, whose pieces say what they are.
export function shownIds(ids, tokens, kind) {
  const isText = (id) => id >= FIRST && tokens[id] !== MASK, pieces = ids.map((id) => tokens[id] ?? String(id));
  if (kind === "characters") return pieces.map((piece, place) => (isText(ids[place]) ? characterOf(piece).replace(" ", "Ġ") : piece));
  if (kind !== "byte-level") return pieces;
  const texts = byteLevel.readable(pieces.filter((_, place) => isText(ids[place])));
  return pieces.map((piece, place) => (isText(ids[place]) ? texts.shift() : piece));
}

// A character that a vocabulary's file cannot hold is written as `U+0020`; neither halves of surrogate pairs nor what is beyond the last.
function characterOf(token) {
  return /^U\+(?!D[89A-F]..$)(10|[1-9A-F])?[0-9A-F]{4}$/.test(token) ? String.fromCodePoint(parseInt(token.slice(2), 16)) : token;
}

function checkBytes({ tokens }) {
  const own = [...tokens.slice(FIRST)];
  if (own.at(-1) === MASK) own.pop();
  if (own.length !== BYTES.length || own.some((token, byte) => token !== byteLevel.LETTERS[byte])) {
    throw new Error("the ticket reads text in bytes, but its vocabulary is not that of bytes");
  }
}
