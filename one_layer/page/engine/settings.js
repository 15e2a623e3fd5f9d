/** The settings in a ticket besides its model: what `one_layer.tickets.settings` reads and checks, as far as a page could be misled by them. */
import { KEYS, checkBounds, checkKnown, readSection } from "./keys.js";
import { refuseIf } from "./config.js";
import { isObject, readJson } from "./json.js";
import { Refused, demand, shown } from "./refused.js";

const MOST = Number.MAX_VALUE, ABOVE_ZERO = Number.MIN_VALUE;
const SOURCES = ["toy", "text", "tsv", "fairseq", "tfds", "labelled", "plain", "enwik8"], STREAMS = ["plain", "enwik8"];
const WITH_FOLDER = ["text", "fairseq", "tsv", "labelled", "plain", "enwik8"];
const TOKENIZERS = ["", "13a", "zh", "char", "intl", "ja-mecab", "ko-mecab", "flores101", "flores200", "none"];
export const INVERSE = /^(none|moses|(subword-nmt|byte-level|sentencepiece)(,moses)?)$/;
const CHECKPOINT = /^(best|last|(average(-best)?:)?\d{1,16})$/;
const GLUE = { qqp: 2, mnli: 2, snli: 2, rte: 2, sst2: 1, cola: 1 }; // texts of one label

const many = 2 ** 24, BOUNDS = {
  translation: {
    beam: [1, 1000], valid_beam: [0, 1000], max_tokens: [1, many], buckets: [1, 1000], length_penalty: [0, MOST], max_length_a: [0, 100],
    max_length_b: [1, 10_000],
  },
  classification: { max_tokens: [1, many], buckets: [1, 1000] },
  causal_lm: {
    stride: [1, 2 ** 16], valid_tokens: [0, MOST], max_tokens: [1, many], top_k: [0, MOST], top_p: [ABOVE_ZERO, 1], sample_length: [1, 2 ** 16],
    sample_seed: [0, 2 ** 32 - 1], temperature: [0, MOST],
  },
  masked_lm: { max_tokens: [1, many], valid_tokens: [0, MOST], candidates: [1, 2 ** 16] },
};

/** The section `evaluation` of a task; keys of other tasks are left out. @param {string} task @param {any} given */
export function readEvaluation(task, given) {
  demand(isObject(given), "its metadata 'evaluation' is not a JSON object with short keys");
  const every = Object.assign({}, ...Object.keys(BOUNDS).map((name) => KEYS[name]));
  for (const key of Object.keys(given)) if (Object.hasOwn(every, key) && !Object.hasOwn(KEYS[task], key)) readSection("evaluation", { [key]: ANY }, { [key]: given[key] });
  const own = Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(KEYS[task], key) || !Object.hasOwn(every, key)));
  const found = readSection("evaluation", KEYS[task], own);
  checkBounds("evaluation", found, BOUNDS[task]);
  if (task === "translation") checkKnown("evaluation.tokenize", found.tokenize, TOKENIZERS);
  refuseIf(task === "causal_lm" && found.temperature !== 0 && found.temperature < 1e-6, `evaluation.temperature is ${found.temperature}; it must be 0 or at least 1e-6`);
  return found;
}
const ANY = ["float or bool or text or texts or none", null];

/** The section `data`: where the text of the run was, and how it is split. @param {string} task @param {any} given @param {any} config of the model */
export function readData(task, given, config, evaluation) {
  const data = readSection("data", KEYS.data, given), streamed = STREAMS.includes(data.source);
  checkKnown("data.source", data.source, SOURCES);
  checkKnown("data.unit", data.unit, ["bytes", "characters", "bpe"]);
  checkKnown("data.bpe_kind", data.bpe_kind, ["subword-nmt", "byte-level", "metaspace"]);
  checkKnown("data.teacher_mix", data.teacher_mix, ["translations", "both", "references"]);
  const pairs = [1, 10 ** 6];
  checkBounds("data", data, {
    toy_train: pairs, toy_valid: pairs, toy_test: pairs, bpe_merges: [0, MOST], max_length: [2, MOST],
    max_tokens: [1, MOST], buckets: [1, MOST], block: [2, 2 ** 16], held_out: [0, 0.5 - 2 ** -54], mask_share: [ABOVE_ZERO, 1 - 2 ** -53],
  });
  const isText = ["text", "tsv", "tfds", "labelled", "plain"].includes(data.source), prepared = data.prepared || data.source === "fairseq" || data.undo;
  refuseIf(WITH_FOLDER.includes(data.source) && !data.directory, "data.directory is empty");
  for (const side of ["source_language", "target_language"]) {
    refuseIf(!streamed && !(data.labels && side === "target_language") && !data[side], `data.${side} is empty`);
  }
  refuseIf(
    ["text", "fairseq", "tfds"].includes(data.source) && !data.labels && data.source_language === data.target_language,
    `data.source_language and data.target_language are both ${shown(data.source_language)}`,
  );
  refuseIf(data.source === "tfds" && !data.tfds_name, "data.tfds_name is empty");
  refuseIf(!isText && (data.held_out || (data.store && !streamed)), "data.store and data.held_out are for text sources only");
  refuseIf(data.held_out && ["valid", "test"].includes(data.train), `data.train is ${shown(data.train)}, which data.held_out takes out of the training text`);
  refuseIf([...data.delimiter].length !== 1 || '"\r\n'.includes(data.delimiter), `data.delimiter is ${shown(data.delimiter)}; it is one character`);
  refuseIf(data.bpe_merges && (data.bpe_codes || prepared), "data.bpe_merges learns codes on raw text, but data.bpe_codes, data.prepared or data.undo is given");
  refuseIf(data.tokenize && data.bpe_kind === "metaspace" && !(prepared && !data.bpe_codes), "data.bpe_kind=metaspace keeps text as it is, but data.tokenize changes it");
  refuseIf(data.undo && !INVERSE.test(data.undo), `data.undo is ${shown(data.undo)}`);
  refuseIf(data.vocabulary && data.source === "fairseq", "data.vocabulary has no effect with data.source='fairseq'");
  checkCorpora(data);
  checkSource(data, streamed);
  checkFits(task, data, config, evaluation, streamed);
  checkNames(data);
  return { ...data, streamed };
}

/** Several corpora, each with its columns, and their shares. */
function checkCorpora({ train, mix, columns, source, labels }) {
  const names = ["text", "tsv"].includes(source) && !labels ? train.split(",").map((name) => name.trim()) : [train];
  const shares = mix ? mix.split(":") : [], groups = names.length > 1 ? columns.split(";").map((each) => each.trim()) : [columns];
  refuseIf(names.length > 1 && (names.includes("") || new Set(names).size < names.length), `data.train is ${shown(train)}; it has different names`);
  const wrong = (share) => !/^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(share) || !(Number(share) > 0);
  refuseIf(mix && (names.length < 2 || shares.length !== names.length || shares.some(wrong)), `data.mix is ${shown(mix)}; it has a number above 0 for each corpus`);
  refuseIf(groups.length !== 1 && groups.length !== names.length, `data.columns is ${shown(columns)}; it has a group for each corpus`);
  for (const own of groups) checkColumns({ columns: own, source: names.length > 1 && source === "tsv" && columns && !own ? "text" : source });
}

function checkColumns({ columns, source }) {
  const names = columns ? columns.split(",").map((name) => name.trim()) : [], numbers = names.filter((name) => /^\p{Nd}+$/u.test(name));
  refuseIf(columns && !["tsv", "labelled"].includes(source), "data.columns is for tables only");
  refuseIf(source === "tsv" && names.length !== 2, "data.columns must name two columns");
  const plain = numbers.map((name) => name.replace(/^0+/, ""));
  const twice = new Set(names).size < names.length || new Set(plain).size < plain.length;
  refuseIf(twice || plain.includes("") || (numbers.length > 0 && numbers.length < names.length), `data.columns is ${shown(columns)}; it has different names, or numbers from 1`);
}

function checkSource(data, streamed) {
  const own = (keys) => keys.every((key) => JSON.stringify(data[key]) === JSON.stringify(KEYS.data[key][1]));
  if (data.source === "toy") {
    refuseIf([data.source_language, data.target_language].sort().join() !== "de,en", "the toy language has the sides 'de' and 'en'");
    refuseIf(!own(["directory"]), "data.directory has no effect with data.source='toy'");
  }
  if (data.source === "toy" || data.source === "enwik8") {
    refuseIf(!own(["train", "valid"]) || (data.tests.length && !own(["tests"])), `data.source=${data.source} has parts of its own`);
  }
  const given = ["teacher", "translations"].filter((key) => data[key]);
  refuseIf(given.length === 2, "data.translations has what a data.teacher would write");
  refuseIf(given.join() === "translations" && data.teacher_mix === "references", "data.translations is not read with data.teacher_mix=references");
  const noText = given.join() === "teacher" && (data.labels || streamed || data.teacher_mix === "references"); // such a teacher writes none
  refuseIf(given.length && !noText && (data.labels || !["toy", "text", "tsv", "tfds"].includes(data.source)), `data.${given[0]} is for pairs of lines`);
  if (!streamed) return;
  for (const key of ["tokenize", "lowercase", "prepared", "undo", "joined_vocabulary", "labels"]) refuseIf(data[key], `data.${key} has no effect with data.source=${data.source}`);
  const bpe = data.unit === "bpe";
  refuseIf(bpe && data.bpe_kind !== "byte-level", "data.unit=bpe needs data.bpe_kind=byte-level");
  refuseIf(bpe && !(data.bpe_merges || data.bpe_codes), "data.unit=bpe needs data.bpe_merges or data.bpe_codes");
  for (const key of ["bpe_merges", "bpe_codes", "vocabulary"]) {
    refuseIf(data[key] && (!bpe || (key === "vocabulary" && !data.bpe_codes)), `data.${key} has no effect with data.unit=${data.unit}`);
  }
}

/** What the task needs of the text. */
function checkFits(task, data, config, evaluation, streamed) {
  if (task === "translation") refuseIf(streamed || data.labels || data.source === "labelled", `task=translation does not read data.source=${data.source}`);
  if (task === "classification") {
    refuseIf(!["labelled", "tfds"].includes(data.source) || !data.labels, `task=classification does not read data.source=${data.source}`);
    textsOf(data);
    refuseIf(data.joined_vocabulary, "data.joined_vocabulary is true, but labels are not text");
    refuseIf(config.positionRows && data.max_length > config.max_positions, `data.max_length is ${data.max_length}, but model.max_positions is ${config.max_positions}`);
  }
  if (task === "causal_lm" || task === "masked_lm") refuseIf(!streamed, `task=${task} does not read data.source=${data.source}`);
  if (task === "causal_lm") {
    refuseIf(config.positionRows && data.block > config.max_positions, `data.block is ${data.block}, but model.max_positions is ${config.max_positions}`);
    refuseIf(evaluation.stride > data.block, `evaluation.stride is ${evaluation.stride}, but data.block is ${data.block}`);
  }
  if (task === "masked_lm") {
    refuseIf(data.block < 3, `data.block is ${data.block}; a masked language model needs at least 3`);
    refuseIf(config.positionRows && data.block > config.max_positions, `data.block is ${data.block}, but model.max_positions is ${config.max_positions}`);
  }
  refuseIf(data.tests.includes("train") || (data.tests.includes("valid") && data.valid !== "valid"), "data.tests contains the name of another part");
}

/** How many texts, 1 or 2, belong to a label. @returns {number} */
export function textsOf({ labels, columns, source }) {
  const given = columns ? columns.split(",").length - 1 : null;
  if (Object.hasOwn(GLUE, labels)) {
    refuseIf(given !== null && given !== 1 && given !== 2, "data.columns of labelled texts has one text or two, and then the label");
    return given ?? GLUE[labels];
  }
  const spelled = (label) => label.trim().split(/\s+/).join("_"), pairs = labels.split(",").map((each) => each.split(":"));
  const names = pairs.map(([first, ...name]) => spelled(name.join(":") || first));
  const written = pairs.map(([first]) => spelled(first)), bad = (list) => new Set(list).size < list.length || list.includes("");
  refuseIf(labels !== "from_train" && (names.length < 2 || bad(names) || bad(written)), `data.labels is ${shown(labels)}`);
  refuseIf(source !== "labelled" || !(given === 1 || given === 2), "data.labels of your own need data.source=labelled and data.columns");
  return given;
}

/** Names of text files must not lead to another folder. */
function checkNames(data) {
  const lists = [data.train, data.valid, ...data.tests, data.tfds_name, ...[data.source_language, data.target_language].map((each) => `x.${each}`)];
  for (const name of lists.flatMap((each) => [each, ...each.split(",").map((part) => part.trim())])) {
    refuseIf(name.startsWith("/") || /[\\\0]/.test(name) || name.split("/").includes(".."), `its data have the name ${shown(name)}, which leads to another folder`);
  }
}

/** The name of the checkpoint; everything else that tells of the training is checked and left out. @returns {string} */
export function readTraining(metadata) {
  const found = readJson(metadata, "training");
  demand(isObject(found), "its metadata 'training' is not a JSON object");
  const { checkpoint = "" } = found;
  demand(checkpoint === "" || (typeof checkpoint === "string" && CHECKPOINT.test(checkpoint)), `its checkpoint is ${shown(checkpoint)}, which is no name of a checkpoint`);
  const [optim, train] = ["optim", "train"].map((name) => {
    const section = name in found ? found[name] : {};
    demand(isObject(section), "a section of its metadata 'training' is not a JSON object");
    return readSection(name, KEYS[name], Object.fromEntries(Object.entries(section).filter(([key]) => Object.hasOwn(KEYS[name], key))));
  });
  const positive = [0, MOST], updates = [0, 2 ** 31 - 1], share = [0, 1 - 2 ** -53];
  checkBounds("optim", { ...optim, lr: optim.lr ?? 0, warmup: optim.warmup ?? 0 }, {
    lr: positive, warmup: updates, warmup_init_lr: positive, weight_decay: positive, clip: positive, b1: share, b2: share, label_smoothing: share,
    eps: [2 ** -126, MOST], accumulate: [1, MOST],
  });
  checkKnown("optim.schedule", optim.schedule, ["inverse_sqrt", "cosine", "linear"]);
  checkBounds("train", train, { updates, epochs: updates, distil: [0, 1] });
  if (!("epochs" in (found.train ?? {}))) train.epochs = 1;
  if (!(train.updates || train.epochs)) throw new Refused("train.updates and train.epochs are both 0");
  return checkpoint;
}
