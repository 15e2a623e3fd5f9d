// Moses' tokenisation, as sacremoses' MosesTokenizer does it for English and German.
//
// tables: the characters that Moses takes for letters, numbers and so on, as the insides of character classes. They are of an older Unicode
// than JavaScript's, without ideographs, and come from sacremoses.

import { split, strip, SPACES, WHITE } from "./python.js";

const ESCAPES = { "&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;" };

// rules: {code, prefixes}; the prefixes are the words that keep a full stop, some of them only before a number.
export function tokenizerOf({ code, prefixes }, { alnum, alpha, lower, number, marks }, splitHyphens) {
  const re = (source) => new RegExp(source, "gu");
  const special = re(`([^${alnum}${marks}${WHITE}.'\`,\\-])`);
  const hyphen = re(`([${alnum}${marks}])-(?=[${alnum}${marks}])`);
  // A comma between two numbers stays.
  const commas = [
    [re(`([^${number}]),`), "$1 , "],
    [re(`,([^${number}])`), " , $1"],
    [re(`([${number}]),$`), "$1 , "],
  ];
  const letters = `${alpha}${marks}`;
  const apostrophes = {
    en: [
      [re(`([^${letters}])'([^${letters}])`), "$1 ' $2"],
      [re(`([^${letters}${number}])'([${letters}])`), "$1 ' $2"],
      [re(`([${letters}])'([^${letters}])`), "$1 ' $2"],
      [re(`([${letters}])'([${letters}])`), "$1 '$2"],
      [re(`([${number}])'(s)`), "$1 '$2"],
    ],
    de: [[/'/gu, " ' "]],
  }[code];
  const stops = fullStops(prefixes, new RegExp(`[${letters}]`, "u"), new RegExp(`^[${lower}]`, "u"));
  return (line) => {
    let text = strip(line.replace(SPACES, " ").replace(/[\x00-\x1f]/g, ""));
    text = text.replace(special, " $1 ");
    if (splitHyphens) text = text.replace(hyphen, "$1 @-@ ");
    text = text.replace(/\.{2,}/g, (dots, place) => ` ${"DOT".repeat(dots.length)}MULTI${place + dots.length < text.length ? " " : ""}`);
    for (const [found, written] of [...commas, ...apostrophes]) text = text.replace(found, written);
    text = strip(stops(text).replace(SPACES, " ")).replace(/\.' ?$/u, " . ' ");
    text = text.replace(/(?:DOT)+MULTI/g, (marker) => ".".repeat((marker.length - 5) / 3));
    return text.replace(/[&|<>'"[\]]/g, (letter) => ESCAPES[letter]);
  };
}

// Separates a full stop from its word, but not after an abbreviation or before a word in lower case.
function fullStops(prefixes, letter, lower) {
  const numeric = new Set(prefixes.filter((each) => / #NUMERIC_ONLY#/.test(each)).map((each) => each.slice(0, each.lastIndexOf(" "))));
  const whole = new Set(prefixes);
  return (text) => {
    const words = split(text);
    const kept = (word, next = "") => {
      if ((word.includes(".") && letter.test(word)) || (whole.has(word) && !numeric.has(word)) || lower.test(next)) return true;
      return numeric.has(word) && /^[0-9]/.test(next);
    };
    return words
      .map((word, place) => (word.length > 1 && word.endsWith(".") && !kept(word.slice(0, -1), words[place + 1]) ? `${word.slice(0, -1)} .` : word))
      .join(" ");
  };
}
