/** Orthogonal matrices for reservoirs: a product of reflections in float64 with whole numbers, as in `one_layer.initializers`. */

const FRACTION = 2 ** 34;

/** Rounds to the nearest whole number, halves to the even one. */
function rint(x) {
  const down = Math.floor(x), rest = x - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}

/**
 * @param {(stream: any, count: number) => Int32Array} sums the draws @param {any} stream
 * @param {number} rows @param {number} columns
 * @returns {Float32Array} [rows, columns], before it is scaled
 */
export function orthogonal(sums, stream, rows, columns) {
  const long = Math.max(rows, columns), short = Math.min(rows, columns);
  const drawn = sums(stream, (short * (2 * long - short + 1)) / 2);
  const reflections = [];
  for (let k = 0, at = 0; k < short; at += long - k, k++) reflections.push(reflection(drawn.subarray(at, at + long - k)));
  const q = new Float64Array(long * short);
  for (let first = short - 1; first >= 0; first--) {
    q[first * short + first] = FRACTION;
    const [vector, sign] = reflections[first];
    const factor = 2 / vector.reduce((sum, x) => sum + x * x, 0);
    const along = new Float64Array(short);
    for (let r = first; r < long; r++) for (let c = first; c < short; c++) along[c] += vector[r - first] * q[r * short + c];
    for (let c = first; c < short; c++) along[c] *= factor;
    for (let r = first; r < long; r++) {
      for (let c = first; c < short; c++) q[r * short + c] -= rint(vector[r - first] * along[c]);
      q[r * short + first] *= sign;
    }
  }
  const found = new Float32Array(long * short);
  for (let r = 0; r < long; r++) {
    for (let c = 0; c < short; c++) found[rows >= columns ? r * short + c : c * long + r] = q[r * short + c] / FRACTION;
  }
  return found;
}

/** The vector of the reflection that sends `drawn` to a multiple of the first axis, and the sign of its column. */
function reflection(drawn) {
  const x = Float64Array.from(drawn, (value) => rint(value * 2 ** -6));
  const sign = x[0] < 0 ? -1 : 1;
  x[0] += sign * rint(Math.sqrt(x.reduce((sum, value) => sum + value * value, 0)));
  if (x.every((value) => value === 0)) x[0] = 1;
  return [x, -sign];
}
