/** XXH64 with the seed 0: the checksum that a zstd frame may end with. */

const P1 = 11400714785074694791n, P2 = 14029467366897019727n, P3 = 1609587929392839161n, P4 = 9650029242287828579n, P5 = 2870177450012600261n;
const wrap = (x) => BigInt.asUintN(64, x);
const turned = (x, bits) => wrap(x << bits) | (x >> (64n - bits));
const round = (sum, word) => wrap(turned(wrap(sum + word * P2), 31n) * P1);

/** @param {Uint8Array} bytes @returns {bigint} */
export function xxh64(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), size = bytes.length;
  let at = 0, sum = P5;
  if (size >= 32) {
    const lanes = [wrap(P1 + P2), P2, 0n, wrap(-P1)];
    for (; at + 32 <= size; at += 32) lanes.forEach((lane, n) => (lanes[n] = round(lane, view.getBigUint64(at + 8 * n, true))));
    sum = wrap(turned(lanes[0], 1n) + turned(lanes[1], 7n) + turned(lanes[2], 12n) + turned(lanes[3], 18n));
    for (const lane of lanes) sum = wrap((sum ^ round(0n, lane)) * P1 + P4);
  }
  sum = wrap(sum + BigInt(size));
  for (; at + 8 <= size; at += 8) sum = wrap(turned(sum ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4);
  if (at + 4 <= size) {
    sum = wrap(turned(sum ^ wrap(BigInt(view.getUint32(at, true)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < size; at++) sum = wrap(turned(sum ^ wrap(BigInt(bytes[at]) * P5), 11n) * P1);
  sum = wrap((sum ^ (sum >> 33n)) * P2);
  sum = wrap((sum ^ (sum >> 29n)) * P3);
  return sum ^ (sum >> 32n);
}
