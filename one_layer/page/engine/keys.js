/**
 * The keys of a ticket's settings that a page computes with, with their types and what an absent one stands for; a test compares them with
 * the records of the program (`ModelKeys`, `DataConfig` and the settings of the tasks).
 */
import { Refused, demand, shown } from "./refused.js";
import { isObject, numberOf } from "./json.js";

const LARGEST_NUMBER = 2 ** 40, LONGEST_TEXT = 1000, LONGEST_LIST = 100, LONGEST_LABELS = 2 ** 16;

const whole = (value) => ["int", value], real = (value) => ["float", value], flag = (value) => ["bool", value];
const text = (value) => ["text", value], follows = (kind) => [`${kind} or none`, null];

/** The values with which keys that are gone did nothing; tickets of earlier versions have them. @type {Record<string, any>} */
const IDLE = {
  "model.coats": 1, "model.score_init": "uniform", "model.reservoir_conv": "dynamic", "model.reservoir_width": 7, "evaluation.top_k": 0,
  "evaluation.candidates": 5, "evaluation.top_p": 1,
};

/** @type {Record<string, Record<string, [string, any]>>} */
export const KEYS = {
  model: {
    d_model: whole(512), ffn: whole(1024), heads: whole(4), encoder_layers: ["int or text", 6], decoder_layers: ["int or text", 6],
    weights: text("one_layer"), sharing: follows("text"), selection: text("magnitude"), keep: real(0.5), threshold: real(0), dynamic_scale: flag(false),
    gains: text("none"), adapter_rank: whole(0), embedding: follows("text"), embedding_source: text("text"),
    embedding_path: text(""), embedding_vocabulary: text(""), shared_embedding: flag(false), positions: text("sinusoidal"), max_positions: whole(512),
    embedding_norm: flag(false), activation: text("relu"), norm: follows("text"), norm_epsilon: real(1e-5), bias: follows("bool"),
    share_norm_scale: follows("bool"), norm_position: text("post"), reservoir: text("transformer"),
    layerdrop: real(0), dropout: real(0), attention_dropout: real(0),
    activation_dropout: real(0), head_dropout: real(0), dtype: text("float32"), trained_precision: text("float32"), vector_precision: text("float32"),
    remat: flag(false), init_preset: text("paper"), init_scheme: text("kaiming_uniform"), init_attention: follows("text"), init_embedding: text(""), scale_by_keep: follows("bool"),
    block: text("paper"), rotary_base: real(10000),
  },
  data: { labels: text(""), columns: text(""), max_length: whole(175), unit: text("bytes"), block: whole(512) },
  translation: {
    beam: whole(5), valid_beam: whole(1), length_penalty: real(1), max_length_a: real(1.2), max_length_b: whole(10), max_tokens: whole(4096),
    buckets: whole(4), tokenize: text(""),
  },
  classification: { max_tokens: whole(4096), buckets: whole(4) },
  causal_lm: {
    stride: whole(256), valid_tokens: whole(0), max_tokens: whole(4096), temperature: real(1), sample_length: whole(200),
    sample_seed: whole(1),
  },
  masked_lm: { max_tokens: whole(4096), valid_tokens: whole(0) },
};

const FITS = {
  int: Number.isInteger,
  float: (value) => typeof numberOf(value) === "number",
  bool: (value) => typeof value === "boolean",
  text: (value) => typeof value === "string" && !value.includes("\0"),
  texts: (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  none: (value) => value === null,
};

/**
 * The values of a section, with what absent ones stand for. Throws `Refused` for unknown keys, and values of another type or too large.
 * @param {string} section as errors call it @param {Record<string, [string, any]>} keys @param {any} given
 */
export function readSection(section, keys, given) {
  demand(isObject(given) && Object.keys(given).every((key) => /^[a-z0-9_]{1,40}$/.test(key)), `its metadata '${section}' is not a JSON object with short keys`);
  const found = Object.fromEntries(Object.entries(keys).map(([key, [, value]]) => [key, value]));
  for (const [key, value] of Object.entries(given)) {
    if (Object.hasOwn(IDLE, `${section}.${key}`) && numberOf(value) === IDLE[`${section}.${key}`]) continue;
    if (!Object.hasOwn(keys, key)) throw new Refused(`unknown key ${section}.${key} in the ticket; this page knows ${Object.keys(keys).join(", ")}`);
    if (!isPlain(section, key, value)) throw new Refused(`${section}.${key} is ${shown(value)}: too long or too large for a setting of a ticket`);
    const kinds = keys[key][0].split(" or ");
    if (!kinds.some((kind) => FITS[kind](value))) throw new Refused(`${section}.${key} is ${shown(value)}; it takes a value of type ${keys[key][0]}`);
    found[key] = numberOf(value);
  }
  return found;
}

function isPlain(section, key, value) {
  const short = (text, most) => typeof text === "string" && [...text].length <= most, number = numberOf(value);
  if (Array.isArray(value)) return value.length <= LONGEST_LIST && value.every((each) => short(each, LONGEST_TEXT));
  if (typeof number === "number") return Math.abs(number) <= LARGEST_NUMBER;
  return value === null || typeof value === "boolean" || short(value, section === "data" && key === "labels" ? LONGEST_LABELS : LONGEST_TEXT);
}

/** Throws `Refused` unless each value lies between two bounds. @param {string} section @param {any} values @param {Record<string, [number, number]>} bounds */
export function checkBounds(section, values, bounds) {
  for (const [key, [least, most]] of Object.entries(bounds)) {
    const value = values[key];
    if (!(value >= least && value <= most)) throw new Refused(`${section}.${key} is ${value}; it must lie in [${least}, ${most.toLocaleString("en")}]`);
  }
}

/** Throws `Refused` unless a value is one of some names. @param {string} name @param {any} value @param {string[]} known */
export function checkKnown(name, value, known) {
  if (!known.includes(value)) throw new Refused(`${name} is ${shown(value)}; known are ${known.filter(Boolean).join(", ")}`);
}

