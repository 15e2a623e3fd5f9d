// Byte-level byte pair encoding, as one_layer/data/text/byte_level.py: GPT-2's and RoBERTa's letters for the 256 bytes, and their merges.

import { kept, merged, pairsOf } from "./merging.js";
import { decoded } from "./metaspace.js";

// Text is split into words as GPT-2 does it: each word keeps the space before it.
const WORD = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const UTF8 = new TextEncoder();

// GPT-2's letter for every byte: the visible Latin-1 letter if there is one, otherwise the next from U+0100 on.
export const LETTERS = lettersOf();
const VALUES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

function lettersOf() {
  const seen = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte < 0xad) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(seen(byte) ? byte : next++));
}

// The pieces of a line, as a list.
export function piecesOf(merges) {
  const pairs = pairsOf(merges);
  const made = new Set([...LETTERS, ...pairs.map((pair) => pair.join(""))]);
  const strange = pairs.flat().find((symbol) => !made.has(symbol));
  if (strange !== undefined) {
    throw new Error(`the ticket's codes: ${JSON.stringify(strange.slice(0, 200))} is neither a byte nor the result of any merge`);
  }
  const ranks = new Map(pairs.map((pair, rank) => [pair.join(" "), rank]));
  const pieces = kept((word) => merged(Array.from(UTF8.encode(word), (byte) => LETTERS[byte]), ranks));
  return (line) => (line.match(WORD) ?? []).flatMap(pieces);
}

// The function that splits a line into pieces with spaces between them.
export function splitter(merges) {
  const pieces = piecesOf(merges);
  return (line) => pieces(line).join(" ");
}

// Pieces for people: the characters that end in each; a space stays `Ġ`, which says where words begin.
export function readable(pieces) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return pieces.map((piece, place) => {
    const bytes = Uint8Array.from(piece, (letter) => VALUES.get(letter) ?? 0x3f);
    return decoder.decode(bytes, { stream: place + 1 < pieces.length }).replaceAll(" ", "Ġ");
  });
}

// The text of a line of pieces. Bytes that are not valid UTF-8 become U+FFFD.
export function join(pieces) {
  const bytes = [...pieces].flatMap((letter) => {
    const value = VALUES.get(letter);
    return letter === " " ? [] : value === undefined ? Array.from(UTF8.encode(letter)) : [value];
  });
  return decoded(bytes);
}
