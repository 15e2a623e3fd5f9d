/** Elements of the page, and values that several parts of it look at. */

/** An element. Attributes that begin with `on` are listeners; `false` and null leave an attribute or a child out. */
export function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "g"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== false));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** A value with listeners. */
export class Value {
  #listeners = [];

  constructor(value) {
    this.now = value;
  }

  set(value) {
    this.now = value;
    for (const listener of this.#listeners) listener(value);
  }

  /** Calls `listener` now and at each change. */
  watch(listener) {
    this.#listeners.push(listener);
    listener(this.now);
  }
}

/** A list of texts, each with a bar for its probability. @param {"ul" | "ol"} tag @param {[string, number][]} rows */
export function bars(tag, rows) {
  const row = ([text, share]) => el("li", {}, el("span", {}, text), el("span", { class: "bar", style: `--share:${share}`, "aria-hidden": "true" }), el("span", { class: "number" }, percent(share, 1)));
  return el(tag, { class: "bars" }, rows.map(row));
}

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

export const counted = (number) => number.toLocaleString("en");
