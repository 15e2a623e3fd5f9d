// Byte pair encoding as the library subword-nmt applies it: `@@` after all parts of a word but the last.

import { kept, merged, wrongLine } from "./merging.js";
import { stripOf } from "./python.js";

const MARK = "@@";
const END = "</w>"; // ends a word, in version 0.2 as part of its last symbol
const stripped = stripOf("\\r\\n ");

// The function that splits a line into subwords; `codes` is the text of a codes file. Throws: Error that names the first wrong line.
export function splitter(codes) {
  const { old, ranks } = parsed(codes);
  const parts = kept((word) => segmented(word, ranks, old).join(`${MARK} `));
  const segment = (line) =>
    stripped(line)
      .split(" ")
      .filter((word) => word)
      .map(parts)
      .join(" ");
  // A mark at the end of a word is text, so that another mark goes before its end.
  const marked = (word) => (word.endsWith(MARK) ? `${word.slice(0, -1)}${MARK} ${word.slice(-1)}` : word);
  return (line) => (line.includes(MARK) ? line.split(" ").map(segment).filter(Boolean).map(marked).join(" ") : segment(line));
}

// Joins subwords into words: removes every `@@ `, and a `@@` at the end of the line.
export function join(line) {
  return `${line} `.replaceAll(`${MARK} `, "").replace(/ $/, "");
}

function segmented(word, ranks, old) {
  const letters = [...word];
  if (letters.length === 1) return letters;
  const symbols = merged(old ? [...letters, END] : [...letters.slice(0, -1), letters.at(-1) + END], ranks, true);
  const last = symbols.pop();
  return last === END ? symbols : [...symbols, last.endsWith(END) ? last.slice(0, -END.length) : last];
}

function parsed(codes) {
  const lines = codes.replace(/\n+$/, "").split("\n");
  const version = lines[0].startsWith("#version:") ? lines.shift().trim() : null;
  if (version !== null && !/^#version: 0\.[12]$/.test(version)) throw new Error(`the ticket's codes, line 1: ${version} is unknown`);
  if (!lines.length || !codes) throw new Error("the ticket's codes hold no merges");
  if (codes.includes("Ġ") && !codes.includes(END)) throw new Error("the ticket's codes hold byte-level merges, but its bpe_kind is another");
  const first = version === null ? 1 : 2;
  const ranks = new Map();
  lines.forEach((line, rank) => {
    const pair = stripped(line);
    if (!/^[^ ]+ [^ ]+$/.test(pair)) throw wrongLine(rank + first, line);
    if (!ranks.has(pair)) ranks.set(pair, rank); // a pair that is there twice counts where it is first
  });
  return { old: version !== "#version: 0.2", ranks };
}
