/** The two entropy codes of zstd (RFC 8878, section 4): finite state entropy and Huffman. */
import { BackwardBits } from "./bits.js";
import { demand } from "./refused.js";

const WHOLE = "a code is not one whole zstd frame";

/** A table of finite state entropy: what each state gives, and how the next one is found.
 * @typedef {{log: number, symbols: Uint8Array, bits: Uint8Array, bases: Uint16Array}} Fse */

/** The table of a distribution. @param {number[]} counts -1 for less than one @param {number} log @returns {Fse} */
export function fseTable(counts, log) {
  const size = 1 << log, symbols = new Uint8Array(size), next = counts.map((count) => Math.abs(count));
  let high = size;
  counts.forEach((count, symbol) => count === -1 && (symbols[--high] = symbol));
  const step = (size >> 1) + (size >> 3) + 3;
  let place = 0;
  counts.forEach((count, symbol) => {
    for (let n = 0; n < count; n++) {
      symbols[place] = symbol;
      do place = (place + step) & (size - 1);
      while (place >= high);
    }
  });
  demand(place === 0, WHOLE);
  const bits = new Uint8Array(size), bases = new Uint16Array(size);
  for (let state = 0; state < size; state++) {
    const following = next[symbols[state]]++;
    bits[state] = log - (31 - Math.clz32(following));
    bases[state] = (following << bits[state]) - size;
  }
  return { log, symbols, bits, bases };
}

/** A table of one symbol. @param {number} symbol @returns {Fse} */
export const fseOnly = (symbol) => ({ log: 0, symbols: Uint8Array.of(symbol), bits: new Uint8Array(1), bases: new Uint16Array(1) });

/** Reads the distribution of a table. @param {Uint8Array} bytes @param {number} most the largest accuracy log @param {number} largest symbol
 * @returns {[Fse, number]} the table, and the bytes that its description takes */
export function readFse(bytes, most, largest) {
  let at = 0;
  const peek = (count) => {
    let value = 0;
    for (let n = 0; n < count; n++) value |= ((bytes[(at + n) >> 3] >> ((at + n) & 7)) & 1) << n;
    return value;
  };
  const take = (count) => {
    const value = peek(count);
    at += count;
    return value;
  };
  const log = take(4) + 5;
  demand(log <= most, WHOLE);
  const counts = [];
  for (let left = (1 << log) + 1; left > 1; ) {
    const width = 32 - Math.clz32(left), small = (1 << width) - 1 - left;
    let value = peek(width - 1);
    if (value < small) at += width - 1;
    else {
      value = take(width);
      if (value >= 1 << (width - 1)) value -= small;
    }
    const count = value - 1;
    counts.push(count);
    left -= Math.abs(count);
    if (count === 0) {
      for (let repeat = 3; repeat === 3; ) {
        repeat = take(2);
        for (let n = 0; n < repeat; n++) counts.push(0);
      }
    }
    demand(counts.length <= largest + 1 && at <= 8 * bytes.length && left >= 1, WHOLE);
  }
  return [fseTable(counts, log), (at + 7) >> 3];
}

/** A Huffman code: the symbol and the length of each prefix of `log` bits.
 * @typedef {{log: number, symbols: Uint8Array, bits: Uint8Array}} Huffman */

/** Reads a Huffman code. @param {Uint8Array} bytes @returns {[Huffman, number]} the code, and the bytes of its description */
export function readHuffman(bytes) {
  const head = bytes[0];
  let weights, used;
  if (head >= 128) {
    const count = head - 127;
    used = 1 + ((count + 1) >> 1);
    weights = Array.from({ length: count }, (_, n) => (n % 2 ? bytes[1 + (n >> 1)] & 15 : bytes[1 + (n >> 1)] >> 4));
  } else {
    used = 1 + head;
    weights = readWeights(bytes.subarray(1, used));
  }
  demand(used <= bytes.length && weights.length <= 255, WHOLE);
  const total = weights.reduce((sum, weight) => sum + (weight ? 1 << (weight - 1) : 0), 0);
  demand(total > 0, WHOLE);
  const log = 32 - Math.clz32(total), rest = (1 << log) - total;
  demand(log <= 11 && (rest & (rest - 1)) === 0, WHOLE);
  weights.push(32 - Math.clz32(rest));
  demand(weights.filter((weight) => weight === 1).length >= 2, WHOLE);
  const symbols = new Uint8Array(1 << log), bits = new Uint8Array(1 << log);
  let place = 0;
  for (let weight = 1; weight <= log; weight++) {
    weights.forEach((each, symbol) => {
      if (each !== weight) return;
      const end = place + (1 << (weight - 1));
      symbols.fill(symbol, place, end);
      bits.fill(log + 1 - weight, place, end);
      place = end;
    });
  }
  return [{ log, symbols, bits }, used];
}

/** The weights of a Huffman code, which two states in turn give. */
function readWeights(bytes) {
  const [table, used] = readFse(bytes, 6, 255), stream = new BackwardBits(bytes.subarray(used)), weights = [];
  const states = [stream.take(table.log), stream.take(table.log)];
  for (let turn = 0; weights.length < 256; turn ^= 1) {
    const state = states[turn];
    weights.push(table.symbols[state]);
    if (stream.left < table.bits[state]) {
      weights.push(table.symbols[states[turn ^ 1]]);
      break;
    }
    states[turn] = table.bases[state] + stream.take(table.bits[state]);
  }
  return weights;
}

/** Decodes one Huffman stream into `out`, which it must fill exactly. @param {Huffman} code @param {Uint8Array} bytes @param {Uint8Array} out */
export function decodeHuffman(code, bytes, out) {
  const stream = new BackwardBits(bytes);
  for (let k = 0; k < out.length; k++) {
    const prefix = stream.peek(code.log);
    out[k] = code.symbols[prefix];
    stream.left -= code.bits[prefix];
  }
  demand(stream.left === 0, WHOLE);
}
