// Moses' detokenisation, as sacremoses' MosesDetokenizer does it for English and German: joins tokens and undoes the escapes.

import { split, strip } from "./python.js";

const ESCAPES = [
  ["&bar;", "|"],
  ["&#124;", "|"],
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&bra;", "["],
  ["&ket;", "]"],
  ["&quot;", '"'],
  ["&apos;", "'"],
  ["&#91;", "["],
  ["&#93;", "]"],
  ["&amp;", "&"],
];
const CLOSING = /^[,.?!:;\\%})\]]+$/u;
const QUOTES = /^['"„“`]+$/u;

export function detokenizerOf(language, { alpha, currency, cjk }) {
  const opening = new RegExp(`^[${currency}([{¿¡]+$`, "u");
  const contraction = new RegExp(`^'[${alpha}]`, "u");
  const [cjkFirst, cjkLast] = [new RegExp(`^[${cjk}]`, "u"), new RegExp(`[${cjk}]$`, "u")];
  const english = language === "en";
  return (line) => {
    const tokens = split(ESCAPES.reduce((text, [escaped, letter]) => text.replaceAll(escaped, letter), ` ${line} `.replaceAll(" @-@ ", "-")));
    const counts = new Map(); // of each quotation mark: an odd one closes
    let [text, space] = ["", " "]; // `space` is what comes before the next token
    tokens.forEach((token, place) => {
      const before = place > 0 ? tokens[place - 1] : "";
      const add = (left, right) => ([text, space] = [text + left + token, right]);
      if (cjkFirst.test(token)) return add(cjkLast.test(before) ? "" : space, " ");
      if (opening.test(token)) return add(space, "");
      if (CLOSING.test(token)) return add("", " ");
      if (english && place > 0 && contraction.test(token)) return add("", " ");
      if (!QUOTES.test(token)) return add(space, " ");
      const quote = /^[„“”]+$/u.test(token) ? '"' : token;
      const count = counts.get(quote) ?? 0;
      // The possessive of a word in `s`: The Jones' house
      if (count % 2 === 0 && english && token === "'" && before.endsWith("s")) return add("", " ");
      counts.set(quote, count + 1);
      return count % 2 === 0 ? add(space, "") : add("", " ");
    });
    return strip(text.replace(/ {2,}/g, " "));
  };
}
