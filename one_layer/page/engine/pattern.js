/** Layer strings, as `one_layer.layers.pattern` reads them: L updatable, R a reservoir, S masked. */
import { Refused, shown } from "./refused.js";

/** The letters of a stack. @param {string} key @param {number | string} value @param {string} letter what a number of layers stands for */
export function expand(key, value, letter) {
  if (typeof value === "number") return letter.repeat(value);
  const short = /^(\d{1,4})([LS])\+(\d{1,4})R$/.exec(value);
  if (short) return alternating(key, value, short[2], Number(short[1]), Number(short[3]));
  if (!/^[LRS]+$/.test(value)) {
    throw new Refused(`model.${key} is ${shown(value)}; it is a number of layers, a string of L, R and S such as LRLRL, or a short form such as 4L+3R`);
  }
  return value;
}

/** Reservoirs alternate with the other layers from the middle outward. */
function alternating(key, value, letter, layers, reservoirs) {
  if (reservoirs > layers + 1) throw new Refused(`model.${key} is ${shown(value)}, but ${layers} layers have only ${layers + 1} places for reservoirs`);
  const span = Math.max(2 * reservoirs - 1, 0), before = Math.floor((layers + reservoirs - span) / 2);
  const middle = Array(reservoirs).fill("R").join(letter);
  return letter.repeat(before) + middle + letter.repeat(layers + reservoirs - span - before);
}
