/**
 * JSON from strangers, as `one_layer.tickets.json_text.parse` reads it: in an object no name is there twice, texts have no half characters, numbers
 * are finite, and lists and objects are at most 100 deep. A number that is written with a fraction or an exponent is no whole number, so it
 * is a `Number` object here, which no check takes for one by mistake: `numberOf` gives its value.
 */
import { Refused, damaged, demand, shown } from "./refused.js";

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const DEEPEST = 100;

/** The value of a JSON text. @param {string} text @param {string} what how errors call the text @returns {any} */
export function parse(text, what) {
  try {
    JSON.parse(text);
    return valueOf((text.match(TOKENS) ?? []).filter((token) => !":,".includes(token)).values(), 0);
  } catch (error) {
    throw damaged(error instanceof Refused ? `${what} ${error.message}` : `${what} is not valid JSON`);
  }
}

/** The value that begins with the next of these tokens of a valid text; undefined at the end of a list. */
function valueOf(tokens, depth) {
  const { value: token } = tokens.next();
  if (depth > DEEPEST) throw new RangeError("too deep");
  if (token === "]" || token === "}") return undefined;
  if (token === "[") return listOf(() => valueOf(tokens, depth + 1));
  if (token === "{") {
    const found = new Map();
    for (let name; (name = valueOf(tokens, depth + 1)) !== undefined; found.set(name, valueOf(tokens, depth + 1))) {
      if (found.has(name)) throw new Refused(`has the name ${shown(name)} twice`);
    }
    return Object.fromEntries(found);
  }
  const value = JSON.parse(token);
  if (value === Infinity || value === -Infinity || (typeof value === "string" && /\p{Surrogate}/u.test(value))) throw new RangeError("no JSON");
  return typeof value === "number" && /[.eE]/.test(token) ? Object(value) : value;
}

function listOf(next) {
  const found = [];
  for (let each; (each = next()) !== undefined; found.push(each));
  return found;
}

/** The value of a number, however it is written; anything else stays as it is. @param {any} value */
export const numberOf = (value) => (value instanceof Number ? value.valueOf() : value);

/** The value of a metadata entry. @param {Record<string, string>} metadata @param {string} name @returns {any} */
export function readJson(metadata, name) {
  demand(Object.hasOwn(metadata, name), `it lacks the metadata '${name}'`);
  return parse(metadata[name], `its metadata '${name}'`);
}

/** Whether this is an object of JSON. @param {unknown} value */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Number);

/** Whether an object has exactly these names. @param {any} value @param {string[]} names */
export const hasExactly = (value, names) =>
  isObject(value) && Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
