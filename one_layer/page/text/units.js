// The units of a language model's text, as one_layer/data/text/units.py: bytes, or pieces of byte-level BPE.

import * as byteLevel from "./byte_level.js";
import { decoded, VALUES } from "./metaspace.js";
import { UNK } from "./special_tokens.js";
import { BYTES } from "./vocabulary.js";

const UTF8 = new TextEncoder();
const FIRST = UNK + 1; // the ids before it are the specials
const MASK = "<mask>";

// Returns {ids(text), text(ids)} of the unit `bytes` or `bpe`. Special tokens have no text.
export function unitOf(name, vocabulary, merges) {
  const tokens = (ids) => Array.from(ids, (id) => (id < FIRST ? "" : vocabulary.tokens[id])).filter((token) => token !== MASK);
  const known = (token) => {
    const id = vocabulary.ids.get(token);
    return id >= FIRST && token !== MASK ? id : UNK; // text cannot contain specials
  };
  const text = (ids) => byteLevel.join(tokens(ids).join(""));
  if (name === "bytes") {
    checkBytes(vocabulary);
    return { ids: (line) => Array.from(UTF8.encode(line), (byte) => byte + FIRST), text };
  }
  const pieces = byteLevel.piecesOf(merges ?? "");
  return { ids: (line) => (line.match(/[^\n]*\n|[^\n]+/g) ?? []).flatMap(pieces).map(known), text };
}

// The ids of a text for people, piece by piece. `kind`: byte-level, or another one, whose pieces say what they are.
export function shownIds(ids, tokens, kind) {
  const isText = (id) => id >= FIRST && tokens[id] !== MASK, pieces = ids.map((id) => tokens[id] ?? String(id));
  if (kind === "metaspace") return spelled(pieces);
  if (kind !== "byte-level") return pieces;
  const texts = byteLevel.readable(pieces.filter((_, place) => isText(ids[place])));
  return pieces.map((piece, place) => (isText(ids[place]) ? texts.shift() : piece));
}

// Pieces in which tokens of bytes are the characters that they spell, the first token of each row; bytes that spell none stay as they are.
function spelled(pieces) {
  const shown = [...pieces];
  for (let first = 0, end; first < pieces.length; first = end + 1) {
    for (end = first; VALUES.has(pieces[end]); ) end++;
    const text = decoded(pieces.slice(first, end).map((piece) => VALUES.get(piece)));
    if (end > first && !text.includes("\uFFFD")) shown.fill("", first, end)[first] = text;
  }
  return shown;
}

function checkBytes({ tokens }) {
  const own = [...tokens.slice(FIRST)];
  if (own.at(-1) === MASK) own.pop();
  if (own.length !== BYTES.length || own.some((token, byte) => token !== byteLevel.LETTERS[byte])) {
    throw new Error("the ticket reads text in bytes, but its vocabulary is not that of bytes");
  }
}
