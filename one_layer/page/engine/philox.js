/** NumPy's Philox (Salmon et al. 2011, Philox4x64-10): a block of four 64-bit words for each number of a counter, by ten rounds under a key. */
import { Blake2b } from "./blake2b.js";

const ROUNDS = 10;
const MULTIPLIERS = [0xd2e7470ee14c6c93n, 0xca5a826395121157n];
const WEYL = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];
const [ML0, MH0, ML1, MH1] = MULTIPLIERS.flatMap((m) => [Number(m & 0xffffffffn), Number(m >> 32n)]);
const TOGETHER = 8; // blocks

/** The stream of a role, as 32-bit words: the lower half of each 64-bit word first. */
export class Stream {
  /** @param {number} seed @param {string} role */
  constructor(seed, role) {
    const key = new DataView(new Blake2b(16).update(new TextEncoder().encode(`${seed}/${role}`)).digest().slice().buffer);
    this.keys = new Int32Array(4 * ROUNDS); // of each round: two 64-bit words
    for (let round = 0; round < ROUNDS; round++) {
      for (const half of [0, 1]) {
        const word = BigInt.asUintN(64, key.getBigUint64(8 * half, true) + BigInt(round) * WEYL[half]);
        this.keys[4 * round + 2 * half] = Number(word & 0xffffffffn);
        this.keys[4 * round + 2 * half + 1] = Number(word >> 32n);
      }
    }
    this.counter = 0;
  }

  /** The next words; every call begins with a new block of eight. @param {number} count @returns {Uint32Array} */
  words(count) {
    const found = new Int32Array(Math.ceil(count / 8) * 8), { keys } = this;
    for (let from = 0; from < found.length; from += 8 * TOGETHER) {
      const to = Math.min(from + 8 * TOGETHER, found.length);
      for (let at = from; at < to; at += 8) found[at] = ++this.counter; // below 2^32
      for (let k = 0; k < 4 * ROUNDS; k += 4) round(found, from, to, keys[k], keys[k + 1], keys[k + 2], keys[k + 3]);
    }
    return new Uint32Array(found.buffer, 0, count);
  }
}

/**
 * A round of the blocks in `out[from ... to]`, each of four 64-bit words a, b, c, d. A block waits long for its products, but no block waits for
 * another, so a processor computes several at once.
 */
function round(out, from, to, key0, key1, key2, key3) {
  for (let at = from; at < to; at += 8) {
    const al = out[at], ah = out[at + 1], cl = out[at + 4], ch = out[at + 5], a0 = al >>> 0, a1 = ah >>> 0, c0 = cl >>> 0, c1 = ch >>> 0;
    // The 128-bit products of a with the first multiplier, and of c with the second: the words pl, ph, ql, qh, and rl, rh, sl, sh.
    const pl = Math.imul(al, ML0), pc = above(a0 * ML0, pl) >>> 0;
    const ph = (pc + Math.imul(al, MH0) + Math.imul(ah, ML0)) | 0, qc = Math.floor(above(a0 * MH0 + a1 * ML0 + pc, ph));
    const ql = (qc + Math.imul(ah, MH0)) | 0, qh = above(a1 * MH0 + qc, ql) | 0;
    const rl = Math.imul(cl, ML1), rc = above(c0 * ML1, rl) >>> 0;
    const rh = (rc + Math.imul(cl, MH1) + Math.imul(ch, ML1)) | 0, sc = Math.floor(above(c0 * MH1 + c1 * ML1 + rc, rh));
    const sl = (sc + Math.imul(ch, MH1)) | 0, sh = above(c1 * MH1 + sc, sl) | 0;
    out[at] = sl ^ out[at + 2] ^ key0;
    out[at + 1] = sh ^ out[at + 3] ^ key1;
    out[at + 2] = rl;
    out[at + 3] = rh;
    out[at + 4] = ql ^ out[at + 6] ^ key2;
    out[at + 5] = qh ^ out[at + 7] ^ key3;
    out[at + 6] = pl;
    out[at + 7] = ph;
  }
}

/**
 * What a sum below 2^66 has above its lower 32 bits, which are `low`, plus a half. So the whole number below is exact, though float64 rounds the sum
 * by up to 2^14. The half is there because `low` with its first bit turned is a signed number, less by 2^31.
 */
const above = (sum, low) => (sum - (low ^ 0x80000000)) * 2 ** -32;
