"use strict";
// Elements, and numbers for people.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) node.setAttribute(name, String(value));
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// A number with at most `digits` digits, without zeros at its end.
function short(value, digits = 4) {
  return value === null || value === undefined ? "" : String(Number(value.toPrecision(digits)));
}

function withUnit(value, units) {
  const [factor, unit] = units.find(([factor]) => value >= factor) ?? units.at(-1);
  return `${short(value / factor, 3)} ${unit}`;
}

function megabytes(value) {
  return withUnit(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 2) return `${Math.round(seconds)} s`;
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function operations(value) {
  return withUnit(value, [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]]);
}

// Numbers, filled up so that their points stand below each other in a column; other texts stay.
function aligned(texts) {
  const digits = (text) => (text.split(".")[1] ?? "").length;
  const numbers = texts.filter((text) => /^[-+]?[\d,]+(\.\d+)?$/.test(text));
  const most = Math.max(0, ...numbers.map(digits));
  return texts.map((text) => (numbers.includes(text) && digits(text) < most ? `${text}${digits(text) ? "" : "\u2008"}${"\u2007".repeat(most - digits(text))}` : text));
}

// A button for each choice, of which one is pressed.
function choice(name, choices, chosen, change) {
  const buttons = choices.map(([value, text]) =>
    element("button", { type: "button", "aria-pressed": value === chosen, onclick: () => {
      for (const [place, button] of buttons.entries()) button.setAttribute("aria-pressed", choices[place][0] === value);
      change(value);
    } }, text));
  return element("span", { class: "choice", role: "group", "aria-label": name }, element("span", {}, name), ...buttons);
}
