// Moses' rules for German and English, as one_layer/data/text/moses.py: which of them a side has, and the small repairs around them.

import { detokenizerOf } from "./moses_detokenize.js";
import { normalizerOf } from "./moses_normalize.js";
import { tokenizerOf } from "./moses_tokenize.js";

const MANY_DOTS = /\.{1000,}/g; // in a row; Python's tokenizer is slow at them, so that they are cut everywhere
const LAST_WORD_WITH_STOP = /[^ .]\.$/u;

// The function that makes tokens of a line, with Moses' escapes. Where the page has no rules for the language, the line has tokens already.
export function tokenizer({ language, normalize, split_hyphens: splitHyphens, spaced }, tables) {
  const rules = rulesOf(language, spaced, tables);
  if (!rules) return (line) => line;
  const [normalized, tokenized] = [normalizerOf(rules.code), tokenizerOf(rules, tables, splitHyphens)];
  return (line) => {
    let text = line.replace(MANY_DOTS, ".".repeat(1000));
    // Moses' script sees the line end; it needs it to exchange a quotation mark at the end with a full stop.
    if (normalize) text = printable(normalized(`${text}\n`));
    text = tokenized(text).replace(/^ +| +$/g, "");
    // Moses' script separates the full stop from the last word even if that is an abbreviation; sacremoses does not.
    return LAST_WORD_WITH_STOP.test(text) ? `${text.slice(0, -1)} .` : text;
  };
}

// The function that makes plain text of a line of tokens.
export function detokenizer({ language, spaced }, tables) {
  const rules = rulesOf(language, spaced, tables);
  return rules ? detokenizerOf(rules.code, tables) : (line) => line;
}

// Whether a side has Moses' tokens for whose language this page has no rules.
export function lacksRules({ tokenize, language, spaced = true }, tables) {
  return Boolean(tokenize && spaced && !rulesOf(language, spaced, tables));
}

// The language's code without its country.
export function code(language) {
  return language.toLowerCase().split(/[-_]/)[0];
}

function rulesOf(language, spaced, tables) {
  return spaced ? (tables && Object.hasOwn(tables.languages, language) ? tables.languages[language] : null) : null;
}

// one_layer/data/text/moses.py: printable
function printable(line) {
  return line.replace(/\p{C}/gu, " ");
}
