/** A ticket, or a line, that cannot be used. The message is one sentence for people, as in `one_layer.system.errors.UserError`. */
export class Refused extends Error {}

const DAMAGED = "the file is damaged or not a ticket: copy it again, or export it again from its run";

/** The error for a damaged file; `problem` says what is wrong with it. @param {string} problem */
export const damaged = (problem) => new Refused(`${problem}; ${DAMAGED}`);

/** Throws that a ticket is damaged unless `fine`. @param {boolean} fine @param {string} problem */
export function demand(fine, problem) {
  if (!fine) throw damaged(problem);
}

/** A value in a message, cut so that no stranger's text fills it. @param {unknown} value */
export function shown(value) {
  const text = typeof value === "string" ? `'${value}'` : String(JSON.stringify(value));
  return text.replace(/[^\x20-\x7e\xa0-\uffff]/g, "?").slice(0, 120);
}
