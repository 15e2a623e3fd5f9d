/** Reads zstd frames (RFC 8878) without dictionaries: the whole frame at once, of a size that its header states. */
import { BackwardBits } from "./bits.js";
import { decodeHuffman, fseOnly, fseTable, readFse, readHuffman } from "./entropy.js";
import { damaged, demand } from "./refused.js";
import { xxh64 } from "./xxh64.js";

const WHOLE = "a code is not one whole zstd frame";
const MAGIC = 0xfd2fb528, LARGEST_BLOCK = 2 ** 17, LARGEST_WINDOW = 27;
// Lengths of literals and of matches: the first value of each code, and how many bits are added to it.
const LITERAL_BASE = [...Array(16).keys(), 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const LITERAL_BITS = [...Array(16).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BASE = [...Array.from({ length: 32 }, (_, n) => n + 3), 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539];
const MATCH_BITS = [...Array(32).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
// What a block uses that brings no tables of its own (section 3.1.1.3.2.2).
const LITERAL_TABLE = fseTable([4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1], 6);
const OFFSET_TABLE = fseTable([1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], 5);
const MATCH_TABLE = fseTable(
  [1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1],
  6,
);
const KINDS = [
  { usual: LITERAL_TABLE, most: 9, largest: 35 },
  { usual: OFFSET_TABLE, most: 8, largest: 31 },
  { usual: MATCH_TABLE, most: 9, largest: 52 },
];

/** The content of one frame. @param {Uint8Array} code @param {number} least @param {number} most bytes that it may have @returns {Uint8Array} */
export function decompress(code, least, most) {
  const { size, at, checked, window } = readHeader(code), largest = Math.min(window, LARGEST_BLOCK);
  if (size < least || size > most) {
    const expected = `${least === most ? "" : "at most "}${most.toLocaleString("en")}`;
    throw damaged(`a code declares ${size.toLocaleString("en")} bytes of content where ${expected} are expected`);
  }
  const frame = { out: new Uint8Array(size), filled: 0, huffman: null, tables: [null, null, null], offsets: [1, 4, 8] };
  let place = at;
  for (let last = false; !last; ) {
    demand(place + 3 <= code.length, WHOLE);
    const head = code[place] | (code[place + 1] << 8) | (code[place + 2] << 16), length = head >> 3, kind = (head >> 1) & 3;
    place += 3;
    last = (head & 1) === 1;
    const stored = kind === 1 ? 1 : length;
    demand(kind < 3 && length <= largest && place + stored <= code.length, WHOLE);
    const bytes = code.subarray(place, place + stored), begin = frame.filled;
    if (kind === 2) {
      readBlock(frame, bytes);
      demand(frame.filled - begin <= largest, WHOLE);
    }
    else {
      demand(frame.filled + length <= size, WHOLE);
      if (kind === 0) frame.out.set(bytes, frame.filled);
      else frame.out.fill(bytes[0], frame.filled, frame.filled + length);
      frame.filled += length;
    }
    place += stored;
  }
  demand(frame.filled === size && place + (checked ? 4 : 0) === code.length, WHOLE);
  if (checked) demand(new DataView(code.buffer, code.byteOffset + place).getUint32(0, true) === Number(xxh64(frame.out) & 0xffffffffn), WHOLE);
  return frame.out;
}

/** The size of the content, where the blocks begin, whether a checksum follows them, and how far back a match may reach. */
function readHeader(code) {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  demand(code.length >= 6 && view.getUint32(0, true) === MAGIC, WHOLE);
  const flags = code[4], single = (flags >> 5) & 1, checked = ((flags >> 2) & 1) === 1;
  demand((flags & 0b1011) === 0, WHOLE); // no dictionary, and no reserved bit
  let at = 5 + (single ? 0 : 1);
  const bytes = [single, 2, 4, 8][flags >> 6];
  demand(bytes > 0 && at + bytes <= code.length, WHOLE);
  const size = bytes === 1 ? code[at] : bytes === 2 ? view.getUint16(at, true) + 256 : bytes === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true));
  const exponent = code[5] >> 3, window = single ? size : 2 ** (10 + exponent) * (1 + (code[5] & 7) / 8);
  demand(single || 10 + exponent <= LARGEST_WINDOW, WHOLE);
  return { size, at: at + bytes, checked, window };
}

function readBlock(frame, bytes) {
  const [literals, used] = readLiterals(frame, bytes);
  runSequences(frame, bytes.subarray(used), literals);
}

/** The literals of a block, and the bytes that they take (section 3.1.1.3.1). */
function readLiterals(frame, bytes) {
  const kind = bytes[0] & 3, form = (bytes[0] >> 2) & 3;
  const head = bytes[0] + bytes[1] * 2 ** 8 + (bytes[2] ?? 0) * 2 ** 16 + (bytes[3] ?? 0) * 2 ** 24 + (bytes[4] ?? 0) * 2 ** 32;
  if (kind < 2) {
    const [begin, size] = form === 1 ? [2, (head >>> 4) & 0xfff] : form === 3 ? [3, (head >>> 4) & 0xfffff] : [1, bytes[0] >> 3];
    const stored = kind === 0 ? size : 1;
    demand(begin + stored <= bytes.length && size <= LARGEST_BLOCK, WHOLE);
    const found = kind === 0 ? bytes.subarray(begin, begin + size) : new Uint8Array(size).fill(bytes[begin]);
    return [found, begin + stored];
  }
  const width = [10, 10, 14, 18][form], begin = [3, 3, 4, 5][form];
  const size = Math.floor(head / 16) % 2 ** width, stored = Math.floor(head / 2 ** (4 + width)) % 2 ** width;
  demand(begin + stored <= bytes.length && size <= LARGEST_BLOCK, WHOLE);
  let coded = bytes.subarray(begin, begin + stored);
  if (kind === 2) {
    const [huffman, used] = readHuffman(coded);
    frame.huffman = huffman;
    coded = coded.subarray(used);
  }
  demand(frame.huffman !== null, WHOLE);
  const found = new Uint8Array(size);
  if (form === 0) decodeHuffman(frame.huffman, coded, found);
  else {
    demand(coded.length >= 6, WHOLE);
    const each = (size + 3) >> 2, lengths = [0, 2, 4].map((k) => coded[k] | (coded[k + 1] << 8));
    lengths.push(coded.length - 6 - lengths[0] - lengths[1] - lengths[2]);
    demand(lengths[3] > 0 && 3 * each <= size && size >= 6, WHOLE);
    lengths.reduce((place, length, k) => {
      decodeHuffman(frame.huffman, coded.subarray(place, place + length), found.subarray(k * each, k === 3 ? size : (k + 1) * each));
      return place + length;
    }, 6);
  }
  return [found, begin + stored];
}

/** Copies literals and earlier content as the sequences of a block say (sections 3.1.1.3.2 and 3.1.1.4). */
function runSequences(frame, bytes, literals) {
  const { out, offsets } = frame;
  demand(bytes.length > 0, WHOLE);
  let count = bytes[0], at = 1, taken = 0, { filled } = frame;
  if (count >= 128) [count, at] = count === 255 ? [bytes[1] + (bytes[2] << 8) + 0x7f00, 3] : [((count - 128) << 8) + bytes[1], 2];
  demand(at <= bytes.length, WHOLE);
  if (count > 0) {
    at = readTables(frame, bytes, at);
    const [lengths, distances, matches] = frame.tables, stream = new BackwardBits(bytes.subarray(at));
    let l = stream.take(lengths.log), o = stream.take(distances.log), m = stream.take(matches.log);
    for (let n = 0; n < count; n++) {
      const code = distances.symbols[o], value = 2 ** code + stream.take(code);
      const matched = matches.symbols[m], match = MATCH_BASE[matched] + stream.take(MATCH_BITS[matched]);
      const literal = lengths.symbols[l], length = LITERAL_BASE[literal] + stream.take(LITERAL_BITS[literal]);
      const distance = nextOffset(offsets, value, length);
      if (n < count - 1) {
        l = lengths.bases[l] + stream.take(lengths.bits[l]);
        m = matches.bases[m] + stream.take(matches.bits[m]);
        o = distances.bases[o] + stream.take(distances.bits[o]);
      }
      demand(stream.left >= 0 && taken + length <= literals.length && filled + length + match <= out.length, WHOLE);
      for (const end = filled + length; filled < end; ) out[filled++] = literals[taken++];
      demand(distance > 0 && distance <= filled, WHOLE);
      for (const end = filled + match; filled < end; filled++) out[filled] = out[filled - distance];
    }
    demand(stream.left === 0, WHOLE);
  } else demand(at === bytes.length, WHOLE);
  demand(filled + literals.length - taken <= out.length, WHOLE);
  out.set(literals.subarray(taken), filled);
  frame.filled = filled + literals.length - taken;
}

function readTables(frame, bytes, start) {
  const modes = bytes[start];
  let at = start + 1;
  demand((modes & 3) === 0, WHOLE);
  KINDS.forEach(({ usual, most, largest }, k) => {
    const mode = (modes >> (6 - 2 * k)) & 3;
    if (mode === 0) frame.tables[k] = usual;
    else if (mode === 1) {
      demand(at < bytes.length && bytes[at] <= largest, WHOLE);
      frame.tables[k] = fseOnly(bytes[at++]);
    } else if (mode === 2) {
      const [table, used] = readFse(bytes.subarray(at), most, largest);
      frame.tables[k] = table;
      at += used;
    } else demand(frame.tables[k] !== null, WHOLE);
  });
  return at;
}

/** The distance of a match; small values name one of the last three distances (section 3.1.1.5). */
function nextOffset(offsets, value, length) {
  const place = value > 3 ? 3 : value - 1 + (length === 0 ? 1 : 0);
  const distance = value > 3 ? value - 3 : place === 3 ? offsets[0] - 1 : offsets[place];
  if (place > 1) offsets[2] = offsets[1];
  if (place > 0) offsets[1] = offsets[0];
  return (offsets[0] = distance);
}
