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

/**
 * The function F of RFC 7693. Its four rows a, b, c, d of four words are variables, because an array would take twice as long; below, a line
 * is one operation on 64 bits. A turn of the loop is half a round: the function G on the columns, and then, with b, c and d rotated, on the
 * diagonals.
 */
function compress(h, m, low, high, last) {
  let a0 = h[0], A0 = h[1], a1 = h[2], A1 = h[3], a2 = h[4], A2 = h[5], a3 = h[6], A3 = h[7];
  let b0 = h[8], B0 = h[9], b1 = h[10], B1 = h[11], b2 = h[12], B2 = h[13], b3 = h[14], B3 = h[15];
  let c0 = IV[0], C0 = IV[1], c1 = IV[2], C1 = IV[3], c2 = IV[4], C2 = IV[5], c3 = IV[6], C3 = IV[7];
  let d0 = IV[8] ^ low, D0 = IV[9] ^ high, d1 = IV[10], D1 = IV[11], d2 = IV[12] ^ last, D2 = IV[13] ^ last, d3 = IV[14], D3 = IV[15];
  let s = 0, t = 0, k = 0;
  for (let at = 0; at < 16 * ROUNDS; at += 8) {
    k = ORDER[at];
    s = (a0 + m[k]) | 0, A0 = (A0 + m[k + 1] + carry(s, a0)) | 0;
    a0 = (s + b0) | 0, A0 = (A0 + B0 + carry(a0, s)) | 0;
    s = d0 ^ a0, d0 = D0 ^ A0, D0 = s;
    c0 = (c0 + d0) | 0, C0 = (C0 + D0 + carry(c0, d0)) | 0;
    s = b0 ^ c0, t = B0 ^ C0, b0 = (s >>> 24) | (t << 8), B0 = (t >>> 24) | (s << 8);
    k = ORDER[at + 1];
    s = (a0 + m[k]) | 0, A0 = (A0 + m[k + 1] + carry(s, a0)) | 0;
    a0 = (s + b0) | 0, A0 = (A0 + B0 + carry(a0, s)) | 0;
    s = d0 ^ a0, t = D0 ^ A0, d0 = (s >>> 16) | (t << 16), D0 = (t >>> 16) | (s << 16);
    c0 = (c0 + d0) | 0, C0 = (C0 + D0 + carry(c0, d0)) | 0;
    s = b0 ^ c0, t = B0 ^ C0, b0 = (s << 1) | (t >>> 31), B0 = (t << 1) | (s >>> 31);

    k = ORDER[at + 2];
    s = (a1 + m[k]) | 0, A1 = (A1 + m[k + 1] + carry(s, a1)) | 0;
    a1 = (s + b1) | 0, A1 = (A1 + B1 + carry(a1, s)) | 0;
    s = d1 ^ a1, d1 = D1 ^ A1, D1 = s;
    c1 = (c1 + d1) | 0, C1 = (C1 + D1 + carry(c1, d1)) | 0;
    s = b1 ^ c1, t = B1 ^ C1, b1 = (s >>> 24) | (t << 8), B1 = (t >>> 24) | (s << 8);
    k = ORDER[at + 3];
    s = (a1 + m[k]) | 0, A1 = (A1 + m[k + 1] + carry(s, a1)) | 0;
    a1 = (s + b1) | 0, A1 = (A1 + B1 + carry(a1, s)) | 0;
    s = d1 ^ a1, t = D1 ^ A1, d1 = (s >>> 16) | (t << 16), D1 = (t >>> 16) | (s << 16);
    c1 = (c1 + d1) | 0, C1 = (C1 + D1 + carry(c1, d1)) | 0;
    s = b1 ^ c1, t = B1 ^ C1, b1 = (s << 1) | (t >>> 31), B1 = (t << 1) | (s >>> 31);

    k = ORDER[at + 4];
    s = (a2 + m[k]) | 0, A2 = (A2 + m[k + 1] + carry(s, a2)) | 0;
    a2 = (s + b2) | 0, A2 = (A2 + B2 + carry(a2, s)) | 0;
    s = d2 ^ a2, d2 = D2 ^ A2, D2 = s;
    c2 = (c2 + d2) | 0, C2 = (C2 + D2 + carry(c2, d2)) | 0;
    s = b2 ^ c2, t = B2 ^ C2, b2 = (s >>> 24) | (t << 8), B2 = (t >>> 24) | (s << 8);
    k = ORDER[at + 5];
    s = (a2 + m[k]) | 0, A2 = (A2 + m[k + 1] + carry(s, a2)) | 0;
    a2 = (s + b2) | 0, A2 = (A2 + B2 + carry(a2, s)) | 0;
    s = d2 ^ a2, t = D2 ^ A2, d2 = (s >>> 16) | (t << 16), D2 = (t >>> 16) | (s << 16);
    c2 = (c2 + d2) | 0, C2 = (C2 + D2 + carry(c2, d2)) | 0;
    s = b2 ^ c2, t = B2 ^ C2, b2 = (s << 1) | (t >>> 31), B2 = (t << 1) | (s >>> 31);

    k = ORDER[at + 6];
    s = (a3 + m[k]) | 0, A3 = (A3 + m[k + 1] + carry(s, a3)) | 0;
    a3 = (s + b3) | 0, A3 = (A3 + B3 + carry(a3, s)) | 0;
    s = d3 ^ a3, d3 = D3 ^ A3, D3 = s;
    c3 = (c3 + d3) | 0, C3 = (C3 + D3 + carry(c3, d3)) | 0;
    s = b3 ^ c3, t = B3 ^ C3, b3 = (s >>> 24) | (t << 8), B3 = (t >>> 24) | (s << 8);
    k = ORDER[at + 7];
    s = (a3 + m[k]) | 0, A3 = (A3 + m[k + 1] + carry(s, a3)) | 0;
    a3 = (s + b3) | 0, A3 = (A3 + B3 + carry(a3, s)) | 0;
    s = d3 ^ a3, t = D3 ^ A3, d3 = (s >>> 16) | (t << 16), D3 = (t >>> 16) | (s << 16);
    c3 = (c3 + d3) | 0, C3 = (C3 + D3 + carry(c3, d3)) | 0;
    s = b3 ^ c3, t = B3 ^ C3, b3 = (s << 1) | (t >>> 31), B3 = (t << 1) | (s >>> 31);

    if (at % 16 === 0) {
      s = b0, b0 = b1, b1 = b2, b2 = b3, b3 = s, t = B0, B0 = B1, B1 = B2, B2 = B3, B3 = t;
      s = d3, d3 = d2, d2 = d1, d1 = d0, d0 = s, t = D3, D3 = D2, D2 = D1, D1 = D0, D0 = t;
    } else {
      s = b3, b3 = b2, b2 = b1, b1 = b0, b0 = s, t = B3, B3 = B2, B2 = B1, B1 = B0, B0 = t;
      s = d0, d0 = d1, d1 = d2, d2 = d3, d3 = s, t = D0, D0 = D1, D1 = D2, D2 = D3, D3 = t;
    }
    s = c0, c0 = c2, c2 = s, t = C0, C0 = C2, C2 = t;
    s = c1, c1 = c3, c3 = s, t = C1, C1 = C3, C3 = t;
  }
  h[0] ^= a0 ^ c0, h[1] ^= A0 ^ C0;
  h[2] ^= a1 ^ c1, h[3] ^= A1 ^ C1;
  h[4] ^= a2 ^ c2, h[5] ^= A2 ^ C2;
  h[6] ^= a3 ^ c3, h[7] ^= A3 ^ C3;
  h[8] ^= b0 ^ d0, h[9] ^= B0 ^ D0;
  h[10] ^= b1 ^ d1, h[11] ^= B1 ^ D1;
  h[12] ^= b2 ^ d2, h[13] ^= B2 ^ D2;
  h[14] ^= b3 ^ d3, h[15] ^= B3 ^ D3;
}
