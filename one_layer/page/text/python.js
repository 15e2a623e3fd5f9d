// Python's idea of white space, which differs from JavaScript's: U+001C to U+001F and U+0085 belong to it, and U+FEFF does not.

export const WHITE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
export const SPACES = new RegExp(`[${WHITE}]+`, "gu");

// The function str.strip(characters), for characters that have no meaning in a regular expression
export function stripOf(characters) {
  const ends = new RegExp(`^[${characters}]+|[${characters}]+$`, "g");
  return (text) => text.replace(ends, "");
}

// str.strip()
export const strip = stripOf(WHITE);

// str.split()
export function split(text) {
  return text.split(SPACES).filter((word) => word);
}

export function isBlank(text) {
  return strip(text) === "";
}

// A text without halves of surrogate pairs, which JavaScript's strings may hold and UTF-8 may not.
export function wellFormed(text) {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}
