/** JSON from strangers, as `one_layer.tickets.file.parse` reads it: no name twice, no lone surrogates. */
import { demand, damaged, shown } from "./refused.js";

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const DEEPEST = 500;

/** The value of a JSON text. @param {string} text @param {string} what how errors call the text @returns {any} */
export function parse(text, what) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(`${what} is not valid JSON`);
  }
  checkNames(text, what);
  return value;
}

/** The value of a metadata entry. @param {Record<string, string>} metadata @param {string} name @returns {any} */
export function readJson(metadata, name) {
  demand(Object.hasOwn(metadata, name), `it lacks the metadata '${name}'`);
  return parse(metadata[name], `its metadata '${name}'`);
}

/** Whether this is an object of JSON. @param {unknown} value */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether an object has exactly these names. @param {any} value @param {string[]} names */
export const hasExactly = (value, names) =>
  isObject(value) && Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));

/** `JSON.parse` keeps the last of two equal names, so the tokens of a valid text are read once more. */
function checkNames(text, what) {
  /** @type {(Set<string> | null)[]} */
  const open = []; // the names of each open object; null for a list
  let before = "";
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === "{" || token === "[") open.push(token === "{" ? new Set() : null);
    else if (token === "}" || token === "]") open.pop();
    else if (token[0] === '"') {
      const string = JSON.parse(token);
      demand(!/\p{Surrogate}/u.test(string), `${what} is not valid JSON`);
      const names = open.at(-1);
      if (names && before !== ":") {
        demand(!names.has(string), `${what} has the name ${shown(string)} twice`);
        names.add(string);
      }
    }
    demand(open.length <= DEEPEST, `${what} is not valid JSON`);
    before = token;
  }
}
