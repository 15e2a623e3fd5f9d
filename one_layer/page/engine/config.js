/** The settings of a model, resolved and checked: `one_layer.models.keys`, `.layers` and `.families`, as far as a ticket needs them. */
import { KEYS, checkBounds, checkKnown, readSection } from "./keys.js";
import { expand } from "./pattern.js";
import { SCHEMES } from "./random.js";
import { Refused } from "./refused.js";

export const STACKS = ["encoder", "decoder"];
const SHARING = { dense: ["none", "weights"], one_layer: ["weights"], multi_layer: ["none", "masks"] };
const DRAWN = SCHEMES.filter((scheme) => scheme !== "orthogonal");
const PRECISIONS = ["float32", "bfloat16", "int8", "int4"];
const KNOWN = {
  weights: Object.keys(SHARING), norm_position: ["post", "pre"], block: ["paper", "modern"],
  selection: ["magnitude", "score", "threshold", "sigmoid_threshold", "signed_threshold", "sign"],
  gains: ["none", "columns"], embedding: ["masked", "frozen", "trained"],
  embedding_source: ["text", "run", "fairseq", "roberta"], positions: ["sinusoidal", "learned", "frozen"], activation: ["relu", "gelu", "gelu_tanh"],
  norm: ["plain", "affine", "frozen", "rms", "rms_plain"], reservoir: ["transformer", "ffn", "gru", "conv"],
  dtype: ["float32", "bfloat16"],
  trained_precision: PRECISIONS, vector_precision: PRECISIONS,
  init_preset: ["paper", "reference"], init_scheme: DRAWN, init_attention: ["scheme", "xavier", "xavier_constant"], init_embedding: ["", ...DRAWN],
};
const BELOW_ONE = 1 - 2 ** -53, ABOVE_ONE = 1 + 2 ** -52, DEEPEST = 2 ** 12, INFINITE = Number.MAX_VALUE;

/** What each task's network has: its stacks, its tables and its heads. */
export const FAMILIES = {
  translation: { stacks: STACKS, check: checkTranslation },
  classification: { stacks: ["encoder"], check: checkClassifier },
  causal_lm: { stacks: ["decoder"], check: checkDecoder },
  masked_lm: { stacks: ["encoder"], check: checkMaskedLm },
};

/**
 * @typedef {{kind: "masked" | "trained" | "fixed", bias: boolean, norm: string, block: string, bothWays: boolean}} LayerSettings
 * @typedef {{letter: string, name: string, layer: LayerSettings, count: number, oneWeight: boolean, oneMask: boolean,
 *   sharedParams: boolean}} Group the layers of one letter in a stack
 * @typedef {{pattern: string, groups: Group[]}} Stack
 */

/**
 * The config of a model. Throws `Refused`, with the key's name, for what no model has.
 * @param {string} task @param {any} given the section `model` @param {number} sourceVocab @param {number} targetVocab
 */
export function readModel(task, given, sourceVocab, targetVocab) {
  const config = { ...readSection("model", KEYS.model, given), task, family: FAMILIES[task], source_vocab: sourceVocab, target_vocab: targetVocab };
  const dense = config.weights === "dense", reference = config.init_preset === "reference", modern = config.block === "modern";
  const followed = {
    sharing: (SHARING[config.weights] ?? ["none"])[0],
    embedding: dense ? "trained" : "masked",
    norm: modern ? (dense ? "rms" : "rms_plain") : dense ? "affine" : "plain",
    bias: dense && !modern,
    share_norm_scale: reference && config.weights === "one_layer",
    init_attention: reference ? "xavier" : "scheme",
    scale_by_keep: !(reference || config.dynamic_scale),
  };
  for (const [key, value] of Object.entries(followed)) config[key] ??= value;
  config.modern = modern;
  config.masked = !dense;
  config.exact = ["magnitude", "score"].includes(config.selection);
  config.positionRows = config.positions === "sinusoidal" ? 0 : config.max_positions + 2;
  checkModel(config);
  config.maskKinds = { signed_threshold: ["mask", "sign"], sign: ["sign"] }[config.selection] ?? ["mask"];
  config.stacks = Object.fromEntries(STACKS.map((stack) => [stack, readStack(config, stack)]));
  FAMILIES[task].check(config);
  return config;
}

/** Whether no matrix has scores, and so a mask. @param {any} config */
export const keepsAll = (config) => config.exact && config.keep === 1;

function checkModel(c) {
  for (const [key, known] of Object.entries(KNOWN)) checkKnown(`model.${key}`, c[key], known);
  const share = [0, BELOW_ONE], size = [1, INFINITE], types = [4, INFINITE];
  checkBounds("model", c, {
    dropout: share, attention_dropout: share, activation_dropout: share, head_dropout: share, layerdrop: share, d_model: [4, INFINITE], ffn: size,
    heads: size, max_positions: size, source_vocab: types, target_vocab: types, keep: [Number.MIN_VALUE, 1],
    adapter_rank: [0, c.d_model], norm_epsilon: [Number.MIN_VALUE, BELOW_ONE], rotary_base: [ABOVE_ONE, 1e9],
  });
  if (c.modern) {
    for (const [key, value] of Object.entries({ norm_position: "pre", activation: "relu", positions: "sinusoidal", bias: false })) {
      refuseIf(c[key] !== value, `model.${key} is ${c[key]}, but model.block is 'modern', which needs ${value}`);
    }
  }
  refuseIf(!c.modern && c.rotary_base !== 10000, `model.rotary_base is ${c.rotary_base}, but model.block is ${c.block}, which has no rotary positions`);
  refuseIf(c.d_model % c.heads !== 0, `model.heads is ${c.heads}, which does not divide model.d_model ${c.d_model}`);
  refuseIf(c.modern && (c.d_model / c.heads) % 2 !== 0, `model.heads is ${c.heads}; rotary positions need an even number of features in a head`);
  refuseIf(c.d_model % 2 !== 0, `model.d_model is ${c.d_model}; sinusoidal positions need an even width of at least 4`);
  for (const stack of STACKS) {
    if (typeof c[`${stack}_layers`] === "number") checkBounds("model", c, { [`${stack}_layers`]: [0, DEEPEST] });
  }
  checkKnown("model.sharing", c.sharing, SHARING[c.weights]);
  refuseIf(c.selection === "sigmoid_threshold" && !(c.threshold > 0 && c.threshold < 1), `model.threshold is ${c.threshold}; it must lie in (0, 1)`);
  refuseIf(c.selection === "sign" && !(c.keep === 1 && !c.dynamic_scale), "model.selection='sign' drops no weight: it needs model.keep=1 and no model.dynamic_scale");
  refuseIf(c.selection === "signed_threshold" && !(c.threshold >= 0 && !c.dynamic_scale), "model.selection='signed_threshold' needs a model.threshold of at least 0 and no model.dynamic_scale");
  refuseIf(c.weights === "dense" && c.embedding === "masked", "model.embedding is 'masked' in a dense model");
  const apart = c.weights === "dense" && c.sharing !== "weights"; // each layer has trained matrices of its own
  refuseIf(c.adapter_rank && apart, `model.adapter_rank is ${c.adapter_rank}, but a dense model has no adapters`);
  refuseIf(c.gains !== "none" && apart, `model.gains is ${c.gains}, but a dense model has none`);
  refuseIf(c.embedding_path && c.embedding === "trained", "model.embedding_path is given, but model.embedding is 'trained'; pre-trained tables stay fixed");
  refuseIf(c.embedding_source !== "text" && !c.embedding_path, `model.embedding_source is ${c.embedding_source}, but model.embedding_path is empty`);
  refuseIf(c.positions === "frozen" && c.embedding_source !== "roberta", "model.positions is 'frozen', which needs model.embedding_source=roberta");
  refuseIf(
    c.embedding_vocabulary && !["fairseq", "roberta"].includes(c.embedding_source),
    "model.embedding_vocabulary needs model.embedding_source=fairseq or roberta",
  );
}

/** @param {unknown} wrong @param {string} problem */
export function refuseIf(wrong, problem) {
  if (wrong) throw new Refused(problem);
}

/** @returns {Stack} */
function readStack(config, stack) {
  const pattern = expand(`${stack}_layers`, config[`${stack}_layers`], config.masked ? "S" : "L");
  refuseIf(pattern.length > DEEPEST, `model.${stack}_layers has ${pattern.length} letters; it must have at most ${DEEPEST}`);
  refuseIf(pattern.includes("S") && !config.masked, `model.${stack}_layers has S, but model.weights is 'dense', which has no masks`);
  const groups = [...new Set(pattern)].sort().map((letter) => {
    const main = letter === (config.masked ? "S" : "L");
    return {
      letter,
      name: main ? "layers" : { L: "trained", R: "reservoir" }[letter],
      layer: layerOf(config, letter, main, stack),
      count: pattern.split(letter).length - 1,
      oneWeight: main && config.sharing === "weights",
      oneMask: main && config.sharing === "masks",
      sharedParams: main && (config.sharing === "masks" || config.share_norm_scale),
    };
  });
  return { pattern, groups };
}

/** @returns {LayerSettings} */
function layerOf(config, letter, main, stack) {
  const block = "transformer";
  if (main) return { kind: config.masked ? "masked" : "trained", bias: config.bias, norm: config.norm, block, bothWays: true };
  if (letter === "L") return { kind: "trained", bias: !config.modern, norm: config.modern ? "rms" : "affine", block, bothWays: true };
  const bothWays = stack === "encoder"; // a decoder must not see later tokens
  return { kind: "fixed", bias: false, norm: config.modern ? "rms_plain" : "plain", block: config.reservoir, bothWays };
}

const depth = (config, stack) => config.stacks[stack].pattern.length;

function checkTranslation(c) {
  refuseIf(!depth(c, "encoder") || !depth(c, "decoder"), "model.encoder_layers and model.decoder_layers must be at least 1 in a translation model");
  refuseIf(c.positions !== "sinusoidal" || c.embedding_norm, "a translation model has sinusoidal positions (model.positions) and no model.embedding_norm");
  refuseIf(
    c.shared_embedding && c.source_vocab !== c.target_vocab,
    `model.shared_embedding needs one vocabulary, but the source has ${c.source_vocab} types and the target ${c.target_vocab}`,
  );
}

function checkClassifier(c) {
  checkEncoderAlone(c, "a classifier");
  refuseIf(c.target_vocab < 6, `model.target_vocab is ${c.target_vocab}; it counts the four special types and at least 2 labels`);
}

function checkMaskedLm(c) {
  checkEncoderAlone(c, "a masked language model");
}

function checkEncoderAlone(c, what) {
  refuseIf(!depth(c, "encoder"), `model.encoder_layers is ${c.encoder_layers}; it must be at least 1`);
  refuseIf(depth(c, "decoder"), `model.decoder_layers is ${c.decoder_layers}; ${what} has only an encoder`);
  refuseIf(c.shared_embedding, `model.shared_embedding is true, but ${what} has one table`);
}

function checkDecoder(c) {
  refuseIf(depth(c, "encoder"), `model.encoder_layers is ${c.encoder_layers}; a decoder alone has no encoder`);
  refuseIf(!depth(c, "decoder"), `model.decoder_layers is ${c.decoder_layers}; it must be at least 1`);
  refuseIf(c.positions === "frozen" || c.embedding_norm || c.shared_embedding, "a decoder alone has sinusoidal or learned positions, no model.embedding_norm and one table");
}
