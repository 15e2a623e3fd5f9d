// Lossless pieces, as one_layer/data/text/metaspace.py: spaces are part of the pieces, so that every line comes back but for spaces at its ends.

import { kept, merged, pairsOf } from "./merging.js";
import { stripOf } from "./python.js";
import { BYTES, SPACE } from "./vocabulary.js";

// Letters with their marks and joiners, numbers, and all else: each with a space before it. Then white space and `▁`, one by one.
const WORD = / ?[\p{L}\p{M}\u200C\u200D]+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}\u2581]+|\p{White_Space}|\u2581/gu;
const stripped = stripOf(" ");
export const VALUES = new Map(BYTES.map((token, byte) => [token, byte]));
const UTF8 = new TextEncoder();
const SPELLED = new Map(Array.from([SPACE, "\n", "\r"], (each) => [each, Array.from(UTF8.encode(each), (byte) => BYTES[byte]).join(" ")]));

// The words of a line, with spaces between them. `▁` and line ends are tokens of bytes.
export function words(line) {
  const text = stripped(line);
  const found = text ? ` ${text}`.match(WORD) : [];
  return found.map((word) => SPELLED.get(word) ?? word.replaceAll(" ", SPACE)).join(" ");
}

// The function that splits the words of a line into pieces.
export function splitter(merges) {
  const pairs = pairsOf(merges);
  checkMade(pairs);
  // A pair that is there twice counts where it is first: the last entry of a Map stays.
  const ranks = new Map(pairs.map((pair, rank) => [pair.join(" "), rank]).reverse());
  const pieces = kept((word) => (!word || VALUES.has(word) ? word : merged(word, ranks).join(" ")));
  return (line) => line.split(" ").map(pieces).join(" ");
}

// The text of a line of pieces, also of SentencePiece's. Bytes that are not valid UTF-8 become U+FFFD.
export function join(pieces) {
  const bytes = pieces.split(" ").flatMap((piece) => {
    const value = VALUES.get(piece);
    return value === undefined ? Array.from(UTF8.encode(piece.replaceAll(SPACE, " "))) : [value];
  });
  return stripped(decoded(bytes));
}

// bytes.decode("utf-8", "replace"); a mark of the byte order is text.
export function decoded(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

// Each symbol of a merge is a character or the result of some merge.
function checkMade(pairs) {
  const made = new Set(pairs.map((pair) => pair.join("")));
  for (const symbol of pairs.flat()) {
    if ([...symbol].length > 1 && !made.has(symbol)) {
      throw new Error(`the ticket's codes: ${JSON.stringify(symbol.slice(0, 200))} is neither a character nor the result of any merge`);
    }
  }
}
