/** Bits read backward from the end of a piece of a zstd frame (RFC 8878, section 4.1). */
import { demand } from "./refused.js";

export class BackwardBits {
  /** The last set bit of `bytes` marks the end of the bits. @param {Uint8Array} bytes */
  constructor(bytes) {
    demand(bytes.length > 0 && bytes.at(-1) !== 0, "a code is not one whole zstd frame");
    this.bytes = bytes;
    this.left = 8 * bytes.length - 1 - Math.clz32(bytes.at(-1)) + 24; // bits that are not read yet
  }

  /** The next bits, without taking them; zeros come after the last one. @param {number} count at most 24 */
  peek(count) {
    if (count === 0) return 0;
    const first = this.left - count, { bytes } = this;
    if (first < 0) return this.left <= 0 ? 0 : (this.#from(0) & ((1 << this.left) - 1)) << -first;
    const byte = first >>> 3;
    return (this.#from(byte) >>> (first & 7)) & ((1 << count) - 1);
  }

  #from(byte) {
    const { bytes } = this;
    return bytes[byte] | (bytes[byte + 1] << 8) | (bytes[byte + 2] << 16) | (bytes[byte + 3] << 24);
  }

  /** Takes the next bits. @param {number} count at most 48 */
  take(count) {
    if (count > 24) return this.take(24) * 2 ** (count - 24) + this.take(count - 24);
    const value = this.peek(count);
    this.left -= count;
    return value;
  }
}
