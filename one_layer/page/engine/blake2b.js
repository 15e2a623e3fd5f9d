/**
 * BLAKE2b (RFC 7693) without a key, for digests and checksums. A 64-bit word is two 32-bit halves: in an array the lower one comes first, and
 * among variables it has the small letter.
 */

const IV = new Int32Array([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
]);
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const ROUNDS = 12;
const ORDER = new Uint8Array(ROUNDS * 16); // where each message word lies among the halves
for (let round = 0; round < ROUNDS; round++) SIGMA[round % 10].forEach((word, k) => (ORDER[16 * round + k] = 2 * word));
const BLOCK = 128;

/** A digest that is fed piece by piece. */
export class Blake2b {
  /** @param {number} size bytes of the digest, 1 to 64 */
  constructor(size) {
    this.size = size;
    this.state = Int32Array.from(IV);
    this.state[0] ^= 0x01010000 ^ size;
    this.pending = new Uint8Array(BLOCK);
    this.held = 0;
    this.total = 0; // bytes that are compressed
    this.message = new Int32Array(32);
  }

  /** Adds bytes. @param {Uint8Array} bytes @returns {this} */
  update(bytes) {
    let place = 0;
    while (place < bytes.length) {
      if (this.held === BLOCK) this.#compress(this.pending, 0, false), (this.held = 0); // the last block waits for `hex`
      if (this.held === 0) {
        for (; bytes.length - place > BLOCK; place += BLOCK) this.#compress(bytes, place, false);
      }
      const part = bytes.subarray(place, place + BLOCK - this.held);
      this.pending.set(part, this.held);
      this.held += part.length;
      place += part.length;
    }
    return this;
  }

  /** The digest, as bytes. No bytes can be added afterwards. @returns {Uint8Array} */
  digest() {
    this.pending.fill(0, this.held);
    this.total += this.held - BLOCK;
    this.#compress(this.pending, 0, true);
    const bytes = new DataView(new ArrayBuffer(64));
    this.state.forEach((half, k) => bytes.setInt32(4 * k, half, true));
    return new Uint8Array(bytes.buffer, 0, this.size);
  }

  /** The digest, hexadecimal. @returns {string} */
  hex() {
    return Array.from(this.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  #compress(bytes, at, last) {
    const { state, message } = this;
    this.total += BLOCK;
    for (let k = 0, p = at; k < 32; k++, p += 4) message[k] = bytes[p] | (bytes[p + 1] << 8) | (bytes[p + 2] << 16) | (bytes[p + 3] << 24);
    compress(state, message, this.total | 0, this.total / 2 ** 32, last ? -1 : 0);
  }
}

/** Whether an addition of 32-bit numbers, one of which was `part`, went beyond: 1 or 0. Without a branch, which no processor could foresee. */
const carry = (sum, part) => (sum >>> 0 < part >>> 0) | 0;

// Where the function G finds its words a, b, c and d among the halves: in the four columns, and then on the four diagonals.
const [A, B, C, D] = ["01230123", "45675674", "89abab89", "cdeffcde"].map((row) => Uint8Array.from(row, (word) => 2 * parseInt(word, 16)));
const V = new Int32Array(32);

/** The function F of RFC 7693. */
function compress(h, m, low, high, last) {
  V.set(h);
  V.set(IV, 16);
  V[24] ^= low;
  V[25] ^= high;
  V[28] ^= last;
  V[29] ^= last;
  for (let at = 0; at < 16 * ROUNDS; at += 2) {
    const g = (at >> 1) & 7, a = A[g], b = B[g], c = C[g], d = D[g];
    let al = V[a], ah = V[a + 1], bl = V[b], bh = V[b + 1], cl = V[c], ch = V[c + 1], dl = V[d], dh = V[d + 1];
    let k = ORDER[at], s = (al + m[k]) | 0, t = (ah + m[k + 1] + carry(s, al)) | 0;
    al = (s + bl) | 0, ah = (t + bh + carry(al, s)) | 0;
    s = dl ^ al, dl = dh ^ ah, dh = s;
    cl = (cl + dl) | 0, ch = (ch + dh + carry(cl, dl)) | 0;
    s = bl ^ cl, t = bh ^ ch, bl = (s >>> 24) | (t << 8), bh = (t >>> 24) | (s << 8);
    k = ORDER[at + 1], s = (al + m[k]) | 0, t = (ah + m[k + 1] + carry(s, al)) | 0;
    al = (s + bl) | 0, ah = (t + bh + carry(al, s)) | 0;
    s = dl ^ al, t = dh ^ ah, dl = (s >>> 16) | (t << 16), dh = (t >>> 16) | (s << 16);
    cl = (cl + dl) | 0, ch = (ch + dh + carry(cl, dl)) | 0;
    s = bl ^ cl, t = bh ^ ch;
    V[a] = al, V[a + 1] = ah, V[b] = (s << 1) | (t >>> 31), V[b + 1] = (t << 1) | (s >>> 31), V[c] = cl, V[c + 1] = ch, V[d] = dl, V[d + 1] = dh;
  }
  for (let k = 0; k < 16; k++) h[k] ^= V[k] ^ V[k + 16];
}
