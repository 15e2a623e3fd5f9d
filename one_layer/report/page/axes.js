// Scales and their marks.

function niceStep(span, count) {
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function linearTicks(low, high, count) {
  const step = niceStep(high - low, count);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

function logTicks(low, high, count) {
  const factors = Math.log10(high / low) > count / 2 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    ticks.push(...factors.map((factor) => factor * 10 ** power));
  }
  const seen = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return seen.length > 1 ? seen : linearTicks(low, high, count);
}

// A scale from values to pixels, with some room at both ends; `log` only of values above zero.
function scale(values, from, to, { log = false, zero = false, room = 0.05, unit = 1, whole = false } = {}) {
  const known = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let low = Math.min(...known), high = Math.max(...known);
  if (!known.length) [low, high] = log ? [1, 10] : [0, 1];
  if (zero && !log) low = Math.min(low, 0);
  const map = log ? Math.log : (value) => value;
  const back = log ? Math.exp : (value) => value;
  let [start, end] = [map(low), map(high)];
  if (end - start < 1e-12) [start, end] = [start - (log ? 0.5 : Math.abs(start) * 0.1 || 1), end + (log ? 0.5 : Math.abs(end) * 0.1 || 1)];
  const margin = room * (end - start);
  if (!zero) start -= margin;
  end += margin;
  const place = (value) => from + (to - from) * (map(value) - start) / (end - start);
  place.ticks = (count) => (log ? logTicks : linearTicks)(back(start) / unit, back(end) / unit, count).map((tick) => tick * unit).filter((tick) => !whole || Number.isInteger(tick));
  place.log = log;
  place.shows = (value) => Number.isFinite(value) && (!log || value > 0) && map(value) >= start - 1e-9 && map(value) <= end + 1e-9;
  return place;
}

// How an axis of seconds up to `last` is labelled.
function time(last) {
  const [unit, word] = last > 7200 ? [3600, "h"] : last > 180 ? [60, "min"] : [1, "s"];
  return { unit, format: (value) => `${short(value / unit)} ${word}` };
}
