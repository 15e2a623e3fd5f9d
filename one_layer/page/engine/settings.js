/**
 * The settings in a ticket besides its model: what `one_layer.tickets.settings` reads, as far as a page computes with it. Where the text of
 * the run came from, and how the model was trained, it does not read.
 */
import { KEYS, checkBounds, checkKnown, readSection } from "./keys.js";
import { refuseIf } from "./config.js";
import { isObject, readJson } from "./json.js";
import { demand, shown } from "./refused.js";

const MOST = Number.MAX_VALUE;
export const INVERSE = /^(none|moses|(subword-nmt|byte-level|sentencepiece)(,moses)?)$/;
const CHECKPOINT = /^(best|last|(average(-best)?:)?\d{1,16})$/;
const OF_ONE_TEXT = ["sst2", "cola"]; // labels of GLUE; those of its other tasks belong to two texts

const many = 2 ** 24, BOUNDS = {
  translation: {
    beam: [1, 1000], valid_beam: [0, 1000], max_tokens: [1, many], buckets: [1, 1000], length_penalty: [0, MOST], max_length_a: [0, 100],
    max_length_b: [1, 10_000],
  },
  classification: { max_tokens: [1, many], buckets: [1, 1000] },
  causal_lm: {
    stride: [1, 2 ** 16], valid_tokens: [0, MOST], max_tokens: [1, many], sample_length: [1, 2 ** 16],
    sample_seed: [0, 2 ** 32 - 1], temperature: [0, MOST],
  },
  masked_lm: { max_tokens: [1, many], valid_tokens: [0, MOST] },
};

/** The section `evaluation` of a task; keys of other tasks are left out. @param {string} task @param {any} given */
export function readEvaluation(task, given) {
  demand(isObject(given), "its metadata 'evaluation' is not a JSON object with short keys");
  const every = Object.assign({}, ...Object.keys(BOUNDS).map((name) => KEYS[name]));
  for (const key of Object.keys(given)) if (Object.hasOwn(every, key) && !Object.hasOwn(KEYS[task], key)) readSection("evaluation", { [key]: ANY }, { [key]: given[key] });
  const own = Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(KEYS[task], key) || !Object.hasOwn(every, key)));
  const found = readSection("evaluation", KEYS[task], own);
  checkBounds("evaluation", found, BOUNDS[task]);
  refuseIf(task === "causal_lm" && found.temperature !== 0 && found.temperature < 1e-6, `evaluation.temperature is ${found.temperature}; it must be 0 or at least 1e-6`);
  return found;
}
const ANY = ["float or bool or text or texts or none", null];

/** The keys of the section `data` that the page computes with. @param {string} task @param {any} given @param {any} config of the model */
export function readData(task, given, config) {
  demand(isObject(given), "its metadata 'data' is not a JSON object with short keys");
  const own = Object.entries(given).filter(([key]) => Object.hasOwn(KEYS.data, key));
  const data = readSection("data", KEYS.data, Object.fromEntries(own)), streamed = task === "causal_lm" || task === "masked_lm";
  checkKnown("data.unit", data.unit, ["bytes", "bpe"]);
  checkBounds("data", data, { max_length: [2, MOST], block: [2, 2 ** 16] });
  const longest = streamed ? "block" : "max_length", placed = streamed || task === "classification";
  refuseIf(
    placed && config.positionRows && data[longest] > config.max_positions,
    `data.${longest} is ${data[longest]}, but model.max_positions is ${config.max_positions}`,
  );
  refuseIf(task === "classification" && ![1, 2].includes(textsOf(data)), "data.columns of labelled texts has one text or two, and then the label");
  return { ...data, streamed };
}

/** How many texts, 1 or 2, belong to a label. @returns {number} */
export function textsOf({ labels, columns }) {
  if (columns) return columns.split(",").length - 1;
  return OF_ONE_TEXT.includes(labels) ? 1 : 2;
}

/** The name of the checkpoint. @returns {string} */
export function readTraining(metadata) {
  const found = readJson(metadata, "training");
  demand(isObject(found), "its metadata 'training' is not a JSON object");
  const { checkpoint = "" } = found;
  demand(checkpoint === "" || (typeof checkpoint === "string" && CHECKPOINT.test(checkpoint)), `its checkpoint is ${shown(checkpoint)}, which is no name of a checkpoint`);
  return checkpoint;
}
