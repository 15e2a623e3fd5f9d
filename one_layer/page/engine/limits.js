/** Limits on what a ticket from a stranger may demand, from its settings alone: `one_layer.tickets.limits` and `one_layer.tasks.work`. */
import { STACKS } from "./config.js";
import { Refused } from "./refused.js";

const MOST_LAYERS = 256, MOST_TYPES = 2 ** 20, LONG_LINE = 256, SHORT_LINE = 16, BLOCK = 8;
const MOST_BYTES = { line: 2 ** 31, batch: 2 ** 39, context: 2 ** 33 }, MOST_OPERATIONS = 2 ** 43, MOST_ORTHOGONAL = 2 ** 37, MOST_ROWS = 2 ** 14;

const depth = (config, stack) => config.stacks[stack].pattern.length;

/** Throws `Refused`, which names what is too large. */
export function checkWork(task, config, data, evaluation) {
  const sizes = STACKS.map((stack) => [`${stack}_layers`, depth(config, stack), MOST_LAYERS]);
  for (const [name, value, most] of [...sizes, ["source_vocab", config.source_vocab, MOST_TYPES], ["target_vocab", config.target_vocab, MOST_TYPES]]) {
    if (value > most) throw new Refused(`model.${name} is ${value}; a ticket's is at most ${most}`);
  }
  const work = (tokens) => lineWork(task, config, evaluation, tokens), long = work(LONG_LINE), short = work(SHORT_LINE);
  const taken = { line: long.bytes, batch: Math.max(1, Math.floor(evaluation.max_tokens / SHORT_LINE)) * short.bytes };
  if (data.streamed) taken.context = work(data.block).bytes;
  for (const [what, bytes] of Object.entries(taken)) {
    if (bytes > MOST_BYTES[what]) throw new Refused(`its model would take ${bytes.toLocaleString("en")} bytes for a ${what}; a ticket may take at most ${MOST_BYTES[what].toLocaleString("en")}`);
  }
  if (long.operations > MOST_OPERATIONS) throw new Refused(`its model would take ${long.operations.toLocaleString("en")} operations for a line`);
}

/** Throws `Refused` for orthogonal matrices that would take long to draw. @param {import("./random.js").Recipe[]} recipes */
export function checkDrawing(recipes) {
  const each = ({ shape: [rows, columns], layers }) => rows * columns * Math.min(rows, columns) * (layers ?? 1);
  for (const { scheme, shape } of recipes) {
    if (scheme === "orthogonal" && Math.max(...shape) > MOST_ROWS) throw new Refused(`an orthogonal matrix of ${shape.join(" x ")} has more than ${MOST_ROWS} rows or columns`);
  }
  const work = recipes.filter(({ scheme }) => scheme === "orthogonal").reduce((sum, recipe) => sum + each(recipe), 0);
  if (work > MOST_ORTHOGONAL) throw new Refused(`its orthogonal matrices would take ${work} multiplications to draw`);
}

function lineWork(task, config, evaluation, tokens) {
  if (task === "translation") {
    const longest = Math.trunc(evaluation.max_length_a * tokens + evaluation.max_length_b) + 1;
    return searchWork(config, tokens, Math.max(evaluation.beam, evaluation.valid_beam), longest);
  }
  if (task === "causal_lm") return decoderWork(config, tokens + evaluation.sample_length);
  return encoderWork(config, tokens);
}

function encoderWork(c, tokens) {
  const kept = tokens * (8 * c.d_model + c.ffn + c.heads * tokens);
  const layer = 4 * c.d_model ** 2 + 2 * c.d_model * c.ffn + 2 * tokens * c.d_model;
  return { bytes: 4 * kept, operations: 2 * tokens * depth(c, "encoder") * layer };
}

function decoderWork(c, tokens) {
  const layers = depth(c, "decoder");
  const kept = tokens * (2 * layers * c.d_model + c.d_model) + 2 * c.target_vocab + c.ffn + c.heads * tokens;
  const layer = 4 * c.d_model ** 2 + 2 * c.d_model * c.ffn + 2 * tokens * c.d_model;
  return { bytes: 4 * kept, operations: 2 * tokens * (layers * layer + c.target_vocab * c.d_model) };
}

function searchWork(c, tokens, beam, longest) {
  const encoder = encoderWork(c, tokens), layers = depth(c, "decoder");
  const positions = Math.ceil(longest / BLOCK) * BLOCK, [memory, cache] = [tokens, positions].map((places) => places * 2 * layers * c.d_model);
  const step = 2 * c.target_vocab + c.ffn + c.heads * (2 * BLOCK * beam + tokens);
  const kept = memory + longest * c.d_model + beam * (cache + 5 * positions + step);
  const seen = Math.floor((beam * (longest + BLOCK)) / 2) + tokens, layer = 8 * c.d_model ** 2 + 2 * c.d_model * c.ffn + 2 * seen * c.d_model;
  const multiplied = layers * layer + c.target_vocab * c.d_model;
  return { bytes: encoder.bytes + 4 * kept + positions * beam ** 2, operations: encoder.operations + 2 * longest * beam * multiplied };
}
