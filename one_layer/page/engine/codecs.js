/** How tensors are coded: bits near their entropy (`one_layer.tickets.codecs`), numbers in fewer bits (`one_layer.tickets.precision`). */
import { Refused, damaged, demand, shown } from "./refused.js";
import { decompress } from "./zstd.js";

export const CODECS = { bits: ["zstd", "zstd-ones", "zstd-zeros"], numbers: ["bfloat16", "int8", "int4"] };
const RARE = 4, LONG = 255;

/** The bytes or numbers that a code stands for. @param {string} name @param {string} codec @param {Uint8Array} code @param {number[]} shape
 * @returns {Uint8Array | Float32Array} */
export function decode(name, codec, code, shape) {
  try {
    return CODECS.numbers.includes(codec) ? numbersOf(codec, code, shape) : bytesOf(codec, code, shape.reduce((a, b) => a * b, 1));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw damaged(`${name}: ${error.message.split(";")[0]}`);
  }
}

function bytesOf(codec, code, length) {
  if (codec === "zstd") return decompress(code, length, length);
  demand(CODECS.bits.includes(codec), `the codec ${shown(codec)} is unknown`);
  const bits = 8 * length, gaps = decompress(code, 0, Math.floor(bits / RARE) + Math.floor(bits / LONG) + 1);
  const packed = new Uint8Array(length);
  let place = 0;
  for (const gap of gaps) {
    place += gap;
    if (gap === LONG) continue;
    demand(place < bits, "a code of gaps reaches beyond its bits");
    packed[place >>> 3] |= 1 << (place & 7);
    place++;
  }
  return codec === "zstd-zeros" ? packed.map((byte) => ~byte) : packed;
}

function numbersOf(codec, code, shape) {
  const size = codeSize(codec, shape);
  return numbersIn(codec, decompress(code, size, size), shape);
}

/** The bytes of an array in a precision. @param {string} codec @param {number[]} shape */
export function codeSize(codec, shape) {
  const columns = shape.at(-1) ?? 1, count = shape.reduce((a, b) => a * b, 1), rows = columns ? count / columns : 0;
  return { bfloat16: 2 * count, int8: 4 * rows + count, int4: 4 * rows + Math.ceil(count / 2) }[codec];
}

/** The numbers that bytes stand for in a precision. @param {string} codec @param {Uint8Array} bytes @param {number[]} shape @returns {Float32Array} */
export function numbersIn(codec, bytes, shape) {
  const columns = shape.at(-1) ?? 1, count = shape.reduce((a, b) => a * b, 1), rows = columns ? count / columns : 0;
  const values = new Float32Array(count);
  if (codec === "bfloat16") {
    const halves = new Uint32Array(values.buffer), view = new DataView(bytes.buffer, bytes.byteOffset);
    for (let k = 0; k < count; k++) halves[k] = view.getUint16(2 * k, true) << 16;
    return values;
  }
  const scales = new Float32Array(bytes.slice(0, 4 * rows).buffer), stored = bytes.subarray(4 * rows);
  for (let row = 0, k = 0; row < rows; row++) {
    for (const end = k + columns; k < end; k++) {
      const number = codec === "int8" ? (stored[k] << 24) >> 24 : ((stored[k >> 1] >> (4 * (k & 1))) & 15) - 8;
      values[k] = number * scales[row];
    }
  }
  return values;
}
