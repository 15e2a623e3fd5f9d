/** The arrays of a model by role: `one_layer.models.parts` and `.weights`. A ticket has a tensor, a mask or a recipe for each. */
import { keepsAll } from "./config.js";

const WIDTH = 7; // positions of a kernel of a convolution

/**
 * @typedef {"kernel" | "scores" | "bias" | "scale" | "column_gain" | "adapter_in" | "adapter_out"} Leaf
 * @typedef {{role: string, collection: "params" | "random" | "frozen", leaf: Leaf, shape: number[]}} Part
 * @typedef {import("./config.js").Group} Group
 */

/** Every array of the model. Random matrices that are masked have a second entry, their `scores`. @returns {Part[]} */
export function partsOf(config) {
  return [...tables(config), ...heads(config), ...config.family.stacks.flatMap((stack) => config.stacks[stack].groups.flatMap((group) => layerParts(config, stack, group)))];
}

/** The beginning of the roles of a group. @param {string} stack @param {Group} group */
export const prefixOf = (stack, group) => (group.name === "layers" ? stack : `${stack}/${group.name}`);

/** The role of the table of positions, which models of one stack have. @returns {string} */
export const positionRole = (config) => `${config.family.stacks[0]}/position`;

/** The tables: role, rows, and who reads them. @returns {{role: string, rows: number}[]} */
export function tablesOf(config) {
  if (config.task === "translation" && config.shared_embedding) return [{ role: "shared/embedding", rows: config.target_vocab }];
  const encoder = { role: "encoder/embedding", rows: config.source_vocab }, decoder = { role: "decoder/embedding", rows: config.target_vocab };
  return { translation: [encoder, decoder], classification: [encoder], causal_lm: [decoder], masked_lm: [encoder] }[config.task];
}

function tables(config) {
  const found = tablesOf(config).flatMap(({ role, rows }) => {
    const shape = [rows, config.d_model];
    if (config.embedding === "trained") return [part("params", role, "kernel", shape)];
    const kernel = part(config.embedding_path ? "frozen" : "random", role, "kernel", shape);
    return config.embedding === "masked" && !keepsAll(config) ? [kernel, part("params", role, "scores", shape)] : [kernel];
  });
  if (config.positionRows) {
    found.push(part(config.positions === "learned" ? "params" : "frozen", positionRole(config), "kernel", [config.positionRows, config.d_model]));
  }
  return [...found, ...(config.embedding_norm ? norm("encoder/embedding/norm", config.norm, config.d_model, [], []) : [])];
}

function heads(config) {
  const d = config.d_model, square = part("params", "head/dense", "kernel", [d, d]), bias = part("params", "head/dense", "bias", [d]);
  if (config.task === "classification") {
    const labels = config.target_vocab - 4;
    return [square, bias, part("params", "head/output", "kernel", [d, labels]), part("params", "head/output", "bias", [labels])];
  }
  if (config.task !== "masked_lm") return [];
  return [square, bias, ...norm("head/dense/norm", "affine", d, [], []), part("params", "head/output", "bias", [config.source_vocab])];
}

/** @param {string} stack @param {Group} group @returns {Part[]} */
function layerParts(config, stack, group) {
  const { layer, count } = group, prefix = prefixOf(stack, group), found = [];
  for (const [name, shape] of matricesOf(config, stack, layer)) {
    const role = `${prefix}/${name}`, layers = group.oneWeight ? [] : [count];
    found.push(part(layer.kind === "trained" ? "params" : "random", role, "kernel", [...layers, ...shape]));
    if (layer.kind === "masked" && !keepsAll(config)) found.push(part("params", role, "scores", [...(group.oneMask ? [] : [count]), ...shape]));
    if (group.name === "layers") {
      if (config.gains === "columns") found.push(part("params", role, "column_gain", [count, shape[1]]));
      const rank = config.adapter_rank;
      if (rank) found.push(part("params", role, "adapter_in", [count, rank, shape[0]]), part("params", role, "adapter_out", [count, rank, shape[1]]));
    }
    if (layer.bias) found.push(part("params", role, "bias", [count, shape[1]]));
  }
  const scale = config.share_norm_scale && group.sharedParams && ["affine", "rms"].includes(layer.norm) ? [] : [count];
  for (const block of blocksOf(config, stack, layer)) found.push(...norm(`${prefix}/${block}/norm`, layer.norm, config.d_model, scale, [count]));
  if (config.norm_position === "pre" && group === config.stacks[stack].groups[0]) found.push(...norm(`${stack}/final/norm`, config.norm, config.d_model, [], []));
  return found;
}

/** The attentions of a layer. @returns {string[]} */
export const attentionsOf = (config, stack) => (stack === "decoder" && config.task === "translation" ? ["self_attention", "cross_attention"] : ["self_attention"]);

/** The blocks of a layer, each of which has a norm. @returns {string[]} */
export const blocksOf = (config, stack, layer) => (layer.block === "transformer" ? [...attentionsOf(config, stack), "ffn"] : [layer.block]);

/** Names and shapes [fan_in, fan_out] of the matrices of one layer. @returns {[string, [number, number]][]} */
function matricesOf(config, stack, layer) {
  const d = config.d_model, found = [];
  if (layer.block === "transformer") {
    for (const attention of attentionsOf(config, stack)) for (const name of ["query", "key", "value", "output"]) found.push([`${attention}/${name}`, [d, d]]);
  }
  if (layer.block === "transformer" || layer.block === "ffn") {
    if (config.modern) found.push(["ffn/gate", [d, config.ffn]]);
    found.push(["ffn/in", [d, config.ffn]], ["ffn/out", [config.ffn, d]]);
  }
  if (layer.block === "gru") {
    const directions = layer.bothWays ? ["forward", "backward"] : ["forward"], width = Math.floor(d / directions.length);
    for (const direction of directions) {
      for (const gate of ["reset", "update", "new"]) found.push([`gru/${direction}/${gate}/input`, [d, width]], [`gru/${direction}/${gate}/state`, [width, width]]);
    }
  }
  if (layer.block === "conv") {
    found.push(["conv/in", [d, 2 * d]], ["conv/kernels", [d, config.heads * WIDTH]], ["conv/out", [d, d]]);
  }
  return found;
}

function norm(role, kind, features, scale, shift) {
  if (kind === "plain" || kind === "rms_plain") return [];
  const collection = kind === "frozen" ? "frozen" : "params", scales = part(collection, role, "scale", [...scale, features]);
  return kind === "rms" ? [scales] : [scales, part(collection, role, "bias", [...shift, features])];
}

const part = (collection, role, leaf, shape) => ({ collection, role, leaf, shape });
