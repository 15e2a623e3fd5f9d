/** Multi-head attention (Vaswani et al. 2017, section 3.2), as `one_layer.layers.attention` computes it, for the rows of one sentence. */

/** The keys and values of some places, [places, d] each; later places are added while decoding. */
export class Memory {
  /** @param {number} d @param {number} places room for so many */
  constructor(d, places) {
    this.d = d;
    this.keys = new Float32Array(places * d);
    this.values = new Float32Array(places * d);
    this.length = 0;
  }

  /** Adds places. @param {Float32Array} keys @param {Float32Array} values */
  add(keys, values) {
    const first = this.length * this.d;
    if (first + keys.length > this.keys.length) {
      for (const name of ["keys", "values"]) {
        const room = new Float32Array(2 * (first + keys.length));
        room.set(this[name]);
        this[name] = room;
      }
    }
    this.keys.set(keys, first);
    this.values.set(values, first);
    this.length += keys.length / this.d;
  }
}

/**
 * What each query sees, mixed by its weights. @param {Float32Array} query [rows, d] @param {Memory} memory @param {number} heads
 * @param {(row: number) => ArrayLike<number>} seen the places that a row sees @param {Float32Array[] | null} kept gets the mean weights of each row
 * @returns {Float32Array} [rows, d]
 */
export function attend(query, memory, heads, seen, kept = null) {
  const { d, keys, values } = memory, head = d / heads, rows = query.length / d, mixed = new Float32Array(query.length), scale = head ** -0.5;
  for (let row = 0; row < rows; row++) {
    const places = seen(row), weights = new Float32Array(places.length), mean = kept && new Float32Array(places.length);
    for (let at = 0; at < d; at += head) {
      const q = row * d + at;
      let most = -Infinity, total = 0;
      for (let n = 0; n < places.length; n++) {
        const k = places[n] * d + at;
        let score = 0;
        for (let i = 0; i < head; i++) score += query[q + i] * keys[k + i];
        weights[n] = score * scale;
        if (weights[n] > most) most = weights[n];
      }
      for (let n = 0; n < places.length; n++) total += weights[n] = Math.exp(weights[n] - most);
      for (let n = 0; n < places.length; n++) {
        const weight = weights[n] / total, v = places[n] * d + at;
        if (mean) mean[n] += weight / heads;
        for (let i = 0; i < head; i++) mixed[q + i] += weight * values[v + i];
      }
    }
    if (kept) kept.push(mean);
  }
  return mixed;
}

/**
 * Rotary positions (Su et al. 2021), in place. @param {Float32Array} x [rows, d] @param {{d_model: number, heads: number, rotary_base: number}} config
 * @param {(row: number) => number} place @returns {Float32Array}
 */
export function rotated(x, { d_model: d, heads, rotary_base: base }, place) {
  const head = d / heads, half = head / 2;
  for (let row = 0; row * d < x.length; row++) {
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(place(row) * Math.fround(base ** (-i / half))), cos = Math.cos(angle), sin = Math.sin(angle);
      for (let at = row * d + i; at < (row + 1) * d; at += head) {
        const first = x[at], second = x[at + half];
        x[at] = first * cos - second * sin;
        x[at + half] = first * sin + second * cos;
      }
    }
  }
  return x;
}
