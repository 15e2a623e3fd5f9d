/** A text in parts that are translated one by one: its lines, and the sentences of a line. What stands between them stays as it is. */

// White space behind the end of a sentence and before the beginning of another one; Chinese and Japanese write none.
const BETWEEN =
  /((?<=[.!?…؟۔।॥]["'”’»)\]]*)\s+(?=["'“„«‚(\[¿¡]*[\p{Lu}\p{Lt}\p{Lo}\p{N}])|(?<=[。！？])\s*(?=[^\s"'”’»」』）)\]。！？.!?…]))/u;
// A dot behind one of these ends no sentence: titles, single letters, ordinals as in `am 3. Mai`.
const GOES_ON = /(^|[\s("'“„«])(Mr|Mrs|Ms|Dr|Prof|St|Nr|No|Hr|Fr|vs|bzw|ca|डॉ|श्री|\p{L}|\d{1,2})\.$/u;

/** @param {string} text @returns {{text: string, after: string}[]} parts whose texts and spaces, put together, are the text */
export function sentencesOf(text) {
  const parts = [];
  for (const [place, line] of text.split(/(\r?\n)/).entries()) {
    if (place % 2) parts.at(-1).after += line;
    else parts.push(...ofLine(line));
  }
  return parts;
}

function ofLine(line) {
  const parts = [], pieces = line.split(BETWEEN);
  for (let place = 0; place < pieces.length; place += 2) {
    const before = parts.at(-1);
    if (before && GOES_ON.test(before.text)) [before.text, before.after] = [before.text + before.after + pieces[place], pieces[place + 1] ?? ""];
    else parts.push({ text: pieces[place], after: pieces[place + 1] ?? "" });
  }
  return parts;
}
