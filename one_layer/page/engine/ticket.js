/** A ticket: a whole trained model, read from a stranger's bytes as `one_layer.tickets.content.from_file` reads it. */
import { codeSize, numbersIn } from "./codecs.js";
import { checkDrawing, checkWork } from "./limits.js";
import { FAMILIES, readModel, refuseIf } from "./config.js";
import { Container, sizeOf, utf8 } from "./container.js";
import { hasExactly, isObject, numberOf, readJson } from "./json.js";
import { checkKnown } from "./keys.js";
import { partsOf } from "./parts.js";
import { SCHEMES, checksum, draw } from "./random.js";
import { Refused, demand, shown } from "./refused.js";
import { INVERSE, readData, readEvaluation, readTraining } from "./settings.js";

const METADATA = ["task", "seed", "step", "model", "data", "evaluation", "format", "version", "codecs", "text", "random", "training"];
const RECIPE = ["role", "shape", "scheme", "scale", "fan_in", "layers", "zero_row", "checksum"];
const FEW = 2 ** 27, MOST = 2 ** 33, WEIGHTS_A_BIT = 32, LARGEST_NUMBER = 2 ** 40, LONGEST_TEXT = 2 ** 24, MOST_MERGES = 2 ** 20;

/**
 * @typedef {{shape: [number, number], layers: number | null, mask: Uint8Array | null, sign: Uint8Array | null}} Mask
 *   packed bits: of one mask, or of each of `layers`; rows of fan_in and columns of fan_out, the lowest bit of each byte first
 * @typedef {{shape: number[], values: Float32Array}} Values
 * @typedef {object} Ticket
 * @property {string} task @property {any} config of the model @property {number} seed @property {number} step @property {string} checkpoint
 * @property {any} data @property {any} evaluation @property {any} assets what `text/index.js` needs
 * @property {Map<string, Mask>} masks by role
 * @property {Map<string, {recipe: import("./random.js").Recipe, weights: Float32Array}>} drawn random matrices that the seed gives, by role
 * @property {Map<string, Values>} arrays all other arrays, by role and leaf, for instance `encoder/ffn/norm/scale`
 * @property {number} bytes of the file
 */

/** Reads a ticket and draws its random weights. Throws `Refused`, one sentence, for what is no whole ticket. @param {Uint8Array} bytes @param {Map<string, Float32Array>} [draws] @returns {Ticket} */
export function openTicket(bytes, draws = new Map()) {
  const file = new Container(bytes), { metadata } = file;
  const settings = readSettings(metadata), { config, seed } = settings;
  checkWork(settings.task, config, settings.data, settings.evaluation);
  const parts = partsOf(config);
  if (!parts.some(({ collection }) => collection === "params")) throw new Refused("model.keep is 1, so there are no masks and nothing was trained");
  checkSize(parts, file);
  const recipes = readRecipes(metadata, parts);
  checkDrawing([...recipes.values()]);
  const { assets, used } = readText(file, config, settings);
  const masks = new Map(), arrays = new Map();
  const joined = new Map();
  for (const [joint, [leaves, precision]] of Object.entries(joinedOf(config))) {
    for (const [name, values] of readJoined(file, joint, precision, parts.filter(({ leaf }) => leaves.includes(leaf)))) joined.set(name, values), used.add(joint);
  }
  for (const { role, collection, leaf, shape } of parts) {
    if (joined.has(`${role}/${leaf}`)) arrays.set(`${role}/${leaf}`, { shape, values: joined.get(`${role}/${leaf}`) });
    else if (leaf === "scores") {
      masks.set(role, readMask(file, role, shape, config));
      config.maskKinds.forEach((kind) => used.add(`${kind}/${role}`));
    } else if (collection !== "random" || !recipes.has(role)) {
      const name = `${collection}/${role}/${leaf}`;
      arrays.set(`${role}/${leaf}`, { shape, values: file.floats(name, shape) });
      used.add(name);
    }
  }
  for (const name of file.tensors.keys()) demand(used.has(name), `its model has no place for the tensor ${name}`);
  for (const name of Object.keys(metadata)) demand(METADATA.includes(name), `its metadata have the unknown name ${shown(name)}`);
  const drawn = new Map();
  for (const [role, recipe] of recipes) drawn.set(role, { recipe, weights: drawnOnce(draws, seed, recipe) });
  return { ...settings, assets, masks, drawn, arrays, bytes: file.total };
}

/** The tensors that hold many small arrays in few bits: the leaves of these arrays, and their precision. */
function joinedOf({ vector_precision: ofVectors, trained_precision: ofMatrices }) {
  const known = { vectors: [["bias", "scale", "column_gain"], ofVectors], adapters: [["adapter_in", "adapter_out"], ofMatrices] };
  return Object.fromEntries(Object.entries(known).filter(([, [, precision]]) => precision !== "float32"));
}

/** The arrays of a joint tensor by role and leaf: one after the other, in the order of their names. */
function readJoined(file, joint, precision, parts) {
  const found = new Map(), nameOf = (part) => `${part.collection}/${part.role}/${part.leaf}`;
  parts.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const code = parts.length ? file.bytes(joint, [parts.reduce((sum, { shape }) => sum + codeSize(precision, shape), 0)]) : new Uint8Array(0);
  let begin = 0;
  for (const { role, leaf, shape } of parts) {
    const end = begin + codeSize(precision, shape);
    found.set(`${role}/${leaf}`, numbersIn(precision, code.subarray(begin, end), shape));
    begin = end;
  }
  return found;
}

function readSettings(metadata) {
  const given = Object.fromEntries(["model", "data", "evaluation"].map((name) => [name, readJson(metadata, name)]));
  demand(isObject(given.model), "its metadata 'model' is not a JSON object with short keys");
  const { source_vocab: source, target_vocab: target, ...model } = given.model;
  const seed = readJson(metadata, "seed"), step = readJson(metadata, "step");
  for (const number of [source, target, seed, step]) {
    demand(Number.isInteger(number) && number >= 0 && number <= LARGEST_NUMBER, "its seed, its step or the sizes of its vocabularies are not valid whole numbers");
  }
  const task = readJson(metadata, "task");
  checkKnown("task", task, Object.keys(FAMILIES));
  if (seed >= 2 ** 32) throw new Refused(`seed is ${seed}; it must be a whole number from 0 to 2**32 - 1`);
  const config = readModel(task, model, source, target), evaluation = readEvaluation(task, given.evaluation);
  return { task, config, seed, step, data: readData(task, given.data, config), evaluation, checkpoint: readTraining(metadata) };
}

function checkSize(parts, file) {
  const weights = parts.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
  if (weights > MOST || weights > Math.max(FEW, 8 * file.size * WEIGHTS_A_BIT)) {
    throw new Refused(`its model has ${weights.toLocaleString("en")} weights, too many for ${file.size.toLocaleString("en")} bytes of data`);
  }
}

/** @returns {Map<string, import("./random.js").Recipe>} by role */
function readRecipes(metadata, parts) {
  const entries = readJson(metadata, "random"), found = new Map();
  const shapes = new Map(parts.filter(({ collection }) => collection === "random").map(({ role, shape }) => [role, shape]));
  demand(Array.isArray(entries), "its metadata 'random' are not a list of recipes");
  for (const entry of entries) {
    checkRecipe(entry);
    const { role, shape, layers, scheme } = entry, wanted = shapes.get(role);
    demand(wanted !== undefined && !found.has(role), `its metadata 'random' have ${shown(role)} twice, or its model has no such matrix`);
    const whole = layers === null ? shape : [layers, ...shape];
    demand(whole.join() === wanted.join(), `its recipe makes ${role} [${whole}], but its model has [${wanted}]`);
    const reservoir = /^(encoder|decoder)\/reservoir\//.test(role);
    demand(scheme !== "orthogonal" || reservoir, `its recipe of ${role} has the scheme orthogonal, which is one of reservoirs`);
    const inside = (entry.fan_in ?? 1) >= 1 && (entry.zero_row ?? 0) >= 0 && (entry.zero_row ?? 0) < shape[0];
    demand(inside, `its recipe of ${role} has an impossible fan_in or zero_row`);
    found.set(role, { ...entry, scale: numberOf(entry.scale) });
  }
  return found;
}

function checkRecipe(entry) {
  demand(hasExactly(entry, RECIPE), "its metadata 'random' are not a list of recipes");
  const { role, shape, scheme, scale, fan_in: fanIn, layers, zero_row: row } = entry;
  const wholes = (list) => Array.isArray(list) && list.every(Number.isInteger), wholeOrNull = (n) => n === null || Number.isInteger(n);
  const typed = [role, scheme].every((text) => typeof text === "string") && wholes(shape) && typeof numberOf(scale) === "number";
  demand(typed && [fanIn, row, layers].every(wholeOrNull), "its metadata 'random' have a value of another type");
  demand(SCHEMES.includes(scheme), `its recipes have the scheme ${shown(scheme)}; known are ${SCHEMES.join(", ")}`);
}

/** What a seed draws by a recipe: tickets of one seed and one shape have it in common. */
function drawnOnce(draws, seed, recipe) {
  const key = JSON.stringify([seed, recipe]);
  if (!draws.has(key)) draws.set(key, drawChecked(seed, recipe));
  return draws.get(key);
}

function drawChecked(seed, recipe) {
  const weights = draw(seed, recipe);
  if (checksum(weights) !== recipe.checksum) throw new Refused(`the seed ${seed} does not give the ${recipe.role} of the model: another generator made this ticket`);
  return weights;
}

/** The masks of a matrix. @returns {Mask} */
function readMask(file, role, shape, config) {
  const [rows, columns] = shape.slice(-2), size = rows * columns, layers = shape.length > 2 ? shape[0] : null;
  const kept = Math.max(1, size - Math.trunc((1 - config.keep) * size));
  const bits = Object.fromEntries(config.maskKinds.map((kind) => {
    const name = `${kind}/${role}`, found = file.bytes(name, [...shape.slice(0, -2), Math.ceil(size / 8)]);
    checkBits(name, found, layers ?? 1, size, config.exact ? kept : null, config.keep);
    return [kind, found];
  }));
  if (bits.mask && bits.sign) demand(bits.sign.every((byte, k) => (byte & ~bits.mask[k]) === 0), `sign/${role} has bits where the mask is 0`);
  return { shape: [rows, columns], layers, mask: bits.mask ?? null, sign: bits.sign ?? null };
}

/** Bits beyond the last are 0, and `wanted` says how many are set in each layer; null if the scores decided. */
function checkBits(name, bits, layers, size, wanted, keep) {
  const bytes = bits.length / layers;
  for (let end = bytes; end <= bits.length; end += bytes) {
    demand(size % 8 === 0 || bits[end - 1] >> size % 8 === 0, `${name} has bits beyond its last weight`);
    const kept = wanted === null ? null : countBits(bits.subarray(end - bytes, end));
    demand(kept === wanted, `${name} keeps ${kept} weights where model.keep ${keep} keeps ${wanted}`);
  }
}

const ONES = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/** How many bits are set. @param {Uint8Array} bytes */
export function countBits(bytes) {
  let count = 0;
  for (let k = 0; k < bytes.length; k++) count += ONES[bytes[k]];
  return count;
}

/** Vocabularies, codes and steps of both sides, as `text/index.js` takes them, and the names of their tensors. */
function readText(file, config, { task, data }) {
  const sides = readJson(file.metadata, "text"), used = new Set();
  demand(hasExactly(sides, ["source", "target"]), "its metadata 'text' does not describe source and target");
  const textOf = (name) => {
    const shape = typeof name === "string" && name.startsWith("text/") ? file.shape(name) : null;
    demand(shape !== null && shape.length === 1 && shape[0] <= LONGEST_TEXT, `its metadata 'text' names ${shown(name)}, which is not a text of at most ${LONGEST_TEXT} bytes`);
    used.add(name);
    return utf8(file.bytes(name, shape), `${name} is not UTF-8`);
  };
  const assets = { task, data };
  for (const [side, types] of [["source", config.source_vocab], ["target", config.target_vocab]]) {
    const fields = sides[side];
    demand(isObject(fields) && Object.hasOwn(fields, "vocabulary"), `its metadata 'text' names no vocabulary of the ${side}`);
    const vocabulary = textOf(fields.vocabulary), codes = fields.codes == null ? null : textOf(fields.codes).replace(/^\ufeff/, "");
    const lines = vocabulary.split("\n"), tokens = lines.length + 3;
    demand(tokens === types && lines.at(-1) === "", `${shown(fields.vocabulary)} has ${tokens} types, special ones included, but its model's table has ${types} rows`);
    if (codes !== null) demand(codes.split("\n").length - 1 <= MOST_MERGES, `${fields.codes} has more than ${MOST_MERGES} lines`);
    checkSteps(fields, side);
    assets[side] = { ...fields, vocabulary, codes };
  }
  return { assets, used };
}

const STEPS = {
  language: "string", tokenize: "boolean", lowercase: "boolean", normalize: "boolean", split_hyphens: "boolean", bpe_kind: "string", pairs: "boolean",
  spaced: "boolean", inverse: "string",
};

/** The fields of `one_layer.data.text.preprocess.Preprocessing`, of which earlier versions had only the first ones. */
function checkSteps(fields, side) {
  const { vocabulary, codes, ...steps } = fields;
  demand(["language", "tokenize", "lowercase", "codes"].every((name) => Object.hasOwn(fields, name)), `its metadata 'text' lack a step of the ${side}`);
  for (const [name, value] of Object.entries(steps)) {
    demand(Object.hasOwn(STEPS, name) && typeof value === STEPS[name], `its metadata 'text' have ${shown(name)}: ${shown(value)}, which is no step of the ${side}`);
  }
  demand(/^[^/\\\0]{1,100}$/.test(steps.language), `its language of the ${side} is ${shown(steps.language)}`);
  checkKnown("data.bpe_kind", steps.bpe_kind ?? "subword-nmt", ["subword-nmt", "byte-level", "metaspace"]);
  refuseIf(steps.inverse && !INVERSE.test(steps.inverse), `data.undo is ${shown(steps.inverse)}`);
  refuseIf(steps.tokenize && steps.bpe_kind === "metaspace", "data.bpe_kind=metaspace keeps text as it is, but data.tokenize changes it");
}
