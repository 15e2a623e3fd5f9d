/** Tickets for other programs: what a module that `one_layer/page/module.py` writes exports. */
import { textOf } from "../text/index.js";
import { isBlank } from "../text/python.js";
import { Model } from "./model.js";
import { Refused } from "./refused.js";
import { textsOf } from "./settings.js";

const LONG = 50; // milliseconds that a page may stand still

/**
 * Each ticket is opened when it is first asked. @param {(() => Uint8Array)[]} tickets their bytes @param {any} tables of Moses' rules, or null
 * @returns {{translate: (lines: string[], options?: {ticket?: number}) => Promise<string[]>,
 *   labels: (lines: string[], options?: {ticket?: number}) => Promise<{label: string, probability: number}[][]>}}
 */
export function embedded(tickets, tables) {
  const models = [];
  let rested = 0; // when the page had its last turn
  const ask = async (lines, number, task, answer) => {
    if (!Array.isArray(lines) || !lines.every((line) => typeof line === "string")) throw new Refused("lines is not an array of strings; give one string for each line");
    if (!Object.hasOwn(tickets, number)) throw new Refused(`there is no ticket ${number}; this module has ${tickets.length}, and the first one is 0`);
    const model = (models[number] ??= Model.open(tickets[number](), (assets) => textOf(assets, tables)));
    if (model.task !== task) throw new Refused(`the task of this ticket is ${model.task}, which ${answer.name} does not do; use a ticket of the task ${task}`);
    const answers = [];
    for (const line of lines) {
      answers.push(answer(model, line));
      if (performance.now() - rested < LONG) continue;
      await new Promise((resolve) => setTimeout(resolve)); // the page may draw, and answer a click
      rested = performance.now();
    }
    return answers;
  };
  const translate = (model, line) => model.run(line, { count: 1 })[0].text;
  const labels = (model, line) => {
    if (isBlank(line)) return [];
    const wanted = textsOf(model.ticket.data), tabs = wanted === 1 ? "one text, without a tab" : "two texts, with a tab between them";
    if (line.split("\t").length !== wanted) throw new Refused(`each line is ${tabs}; change ${JSON.stringify(line.slice(0, 60))}`);
    return model.run(line);
  };
  return {
    translate: (lines, { ticket = 0 } = {}) => ask(lines, ticket, "translation", translate),
    labels: (lines, { ticket = 0 } = {}) => ask(lines, ticket, "classification", labels),
  };
}
