/**
 * The container of a ticket, as `one_layer.tickets.file` reads it: a safetensors file of byte and float32 arrays, with metadata and a
 * digest over everything. A file that passes here is well-formed; whether its content makes sense is checked in `ticket.js`.
 */
import { Blake2b } from "./blake2b.js";
import { CODECS, decode } from "./codecs.js";
import { hasExactly, isObject, parse } from "./json.js";
import { Refused, damaged, demand, shown } from "./refused.js";

const NAME = /^[a-z0-9_]+(\/[a-z0-9_]+)*$/;
const LONGEST_NAME = 100, MOST_AXES = 4, MOST_ENTRIES = 2 ** 40, LONGEST_HEADER = 2 ** 20;
const BYTES = { U8: 1, F32: 4 };

/** @typedef {{dtype: "U8" | "F32", shape: number[], bytes: Uint8Array}} Tensor stored as it is in the file */

/** The product of a shape. @param {number[]} shape */
export const sizeOf = (shape) => shape.reduce((product, n) => product * n, 1);

const same = (a, b) => a.length === b.length && a.every((n, k) => n === b[k]);
const listed = (shape) => `[${shape.join(", ")}]`;

/** The content of a file: metadata, and tensors as they are stored, of which `coded` says how some are decoded. */
export class Container {
  /** @param {Uint8Array} content of the whole file; throws `Refused` for anything but one complete ticket of this version */
  constructor(content) {
    const [header, data] = split(content);
    const metadata = header.__metadata__;
    demand(isObject(metadata) && Object.values(metadata).every((text) => typeof text === "string"), "its header has no metadata");
    if (metadata.format !== "one_layer ticket") throw new Refused("it is a safetensors file, but not a ticket; give one that one_layer exported");
    if (metadata.version !== "1") throw new Refused(`it is a ticket of version ${shown(metadata.version)}; this page reads version 1`);
    delete header.__metadata__;
    const { digest, ...others } = metadata;
    this.size = data.length;
    this.total = content.length;
    this.metadata = others;
    this.tensors = readTensors(header, data);
    demand(digest === digestOf(others, this.tensors), "its digest does not match its content");
    this.coded = readCodecs(others, this.tensors);
  }

  /** The shape of a tensor when it is decoded, or null. @param {string} name @returns {number[] | null} */
  shape(name) {
    return this.coded.get(name)?.shape ?? this.tensors.get(name)?.shape ?? null;
  }

  /** The bytes of a tensor of this shape, decoded. @param {string} name @param {number[]} shape @returns {Uint8Array} */
  bytes(name, shape) {
    return /** @type {Uint8Array} */ (this.#tensor(name, "uint8", shape));
  }

  /** The numbers of a tensor of this shape, decoded. @param {string} name @param {number[]} shape @returns {Float32Array} */
  floats(name, shape) {
    const found = this.#tensor(name, "float32", shape);
    return found instanceof Float32Array ? found : new Float32Array(found.slice().buffer);
  }

  #tensor(name, dtype, shape) {
    const stored = this.tensors.get(name), found = this.shape(name), codec = this.coded.get(name)?.codec;
    demand(stored !== undefined && found !== null, `it lacks the tensor '${name}', which its model needs`);
    const kind = stored.dtype === "F32" || CODECS.numbers.includes(codec) ? "float32" : "uint8";
    demand(kind === dtype && same(found, shape), `${name} is ${kind} ${listed(found)}, but its model's is ${dtype} ${listed(shape)}`);
    return codec === undefined ? stored.bytes : decode(name, codec, stored.bytes, shape);
  }
}

/** The header and the data. */
function split(content) {
  const length = content.length < 8 ? Infinity : Number(new DataView(content.buffer, content.byteOffset).getBigUint64(0, true));
  if (8 + length > content.length) throw damaged(`it ends within its header: it has ${content.length.toLocaleString("en")} bytes`);
  if (length > LONGEST_HEADER) throw damaged(`its header has ${length.toLocaleString("en")} bytes; no ticket's has more than 2^20`);
  const header = parse(utf8(content.subarray(8, 8 + length), "its header is not valid JSON"), "its header");
  demand(isObject(header), "its header is not a JSON object");
  return [header, content.subarray(8 + length)];
}

/** The text of bytes in UTF-8. @param {Uint8Array} bytes @param {string} problem what errors say of other bytes @returns {string} */
export function utf8(bytes, problem) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw damaged(problem);
  }
}

/** The arrays that the header describes. Every byte of the data belongs to exactly one of them. @returns {Map<string, Tensor>} */
function readTensors(header, data) {
  const described = Object.entries(header).map(([name, entry]) => [name, entry, ...placeOf(name, entry)]);
  described.sort(([a, , begin, end], [b, , first, last]) => begin - first || end - last || (a < b ? -1 : 1));
  const tensors = new Map();
  let place = 0;
  for (const [name, entry, begin, end] of described) {
    demand(begin === place, `${name} starts at byte ${begin} of the data instead of ${place}`);
    demand(end <= data.length, `it ends within ${name}: the header describes more bytes than the file has`);
    tensors.set(name, { dtype: entry.dtype, shape: entry.shape, bytes: data.subarray(begin, end) });
    place = end;
  }
  demand(place === data.length, `${data.length - place} bytes follow the last tensor`);
  return tensors;
}

function placeOf(name, entry) {
  demand(name.length <= LONGEST_NAME && NAME.test(name), `its header has the invalid tensor name ${shown(name)}`);
  demand(hasExactly(entry, ["dtype", "shape", "data_offsets"]), `its header does not give dtype, shape and data_offsets of ${name}`);
  const { dtype, shape, data_offsets: offsets } = entry;
  demand(dtype === "U8" || dtype === "F32", `${name} has the dtype ${shown(dtype)}; a ticket's tensors are U8 or F32`);
  demand(isShape(shape) && isWhole(offsets) && offsets.length === 2, `its header gives ${name} an impossible shape or place`);
  const [begin, end] = offsets;
  demand(end - begin === sizeOf(shape) * BYTES[dtype], `${name} has the shape ${listed(shape)} but ${end - begin} bytes`);
  return [begin, end];
}

/** The coded tensors, with their codecs and their decoded shapes. @returns {Map<string, {codec: string, shape: number[]}>} */
function readCodecs(metadata, tensors) {
  const entries = parse(metadata.codecs ?? "", "its metadata 'codecs'");
  demand(isObject(entries), "its metadata 'codecs' is not a JSON object");
  for (const [name, entry] of Object.entries(entries)) {
    const stored = tensors.get(name);
    demand(stored?.dtype === "U8" && stored.shape.length === 1, `its metadata 'codecs' names ${shown(name)}, which is not a coded tensor`);
    const known = hasExactly(entry, ["codec", "shape"]) && typeof entry.codec === "string" && isShape(entry.shape);
    demand(known, `its metadata 'codecs' does not give codec and shape of ${name}`);
  }
  return new Map(Object.entries(entries));
}

const isWhole = (values) => Array.isArray(values) && values.every((n) => Number.isInteger(n) && n >= 0 && n <= MOST_ENTRIES);
const isShape = (values) => isWhole(values) && values.length <= MOST_AXES && sizeOf(values.filter((n) => n)) <= MOST_ENTRIES;

/** BLAKE2b (256 bits, hexadecimal) of all content, in a fixed order, with lengths. */
function digestOf(metadata, tensors) {
  const digest = new Blake2b(32), encoder = new TextEncoder();
  const number = (value) => digest.update(new Uint8Array(new BigUint64Array([BigInt(value)]).buffer));
  const bytes = (piece) => (number(piece.length), digest.update(piece));
  const text = (piece) => bytes(encoder.encode(piece));
  number(Object.keys(metadata).length);
  for (const name of Object.keys(metadata).sort()) text(name), text(metadata[name]);
  number(tensors.size);
  for (const name of [...tensors.keys()].sort()) {
    const tensor = tensors.get(name);
    text(name), text(tensor.dtype), text(tensor.shape.join(",")), bytes(tensor.bytes);
  }
  return digest.hex();
}
