/** Pieces of text as people read them: words of pieces, and attention between words. */

const ESCAPES = { "&amp;": "&", "&#124;": "|", "&lt;": "<", "&gt;": ">", "&apos;": "'", "&quot;": '"', "&#91;": "[", "&#93;": "]" };
const SPECIALS = { "</s>": "end", "<s>": "start", "<unk>": "unknown", "<pad>": "" };

/** The words of pieces, each with the places of its pieces: subword-nmt's `@@`, metaspace's `▁` and the `Ġ` of bytes say where words end. */
export function wordsOf(pieces) {
  const spaced = ["▁", "Ġ"].find((sign) => pieces.some((piece) => piece.startsWith(sign)));
  const words = [];
  pieces.forEach((piece, place) => {
    const before = words.at(-1);
    const special = Object.hasOwn(SPECIALS, piece);
    const opens = !before || special || before.special || (spaced ? piece.startsWith(spaced) : !pieces[place - 1].endsWith("@@"));
    if (opens) words.push({ text: shownPiece(piece), places: [place], special });
    else {
      before.text += shownPiece(piece);
      before.places.push(place);
    }
  });
  return words;
}

/** A piece without the signs of its vocabulary. */
export function shownPiece(piece) {
  if (Object.hasOwn(SPECIALS, piece)) return SPECIALS[piece];
  return piece.replace(/@@$/, "").replaceAll(/[▁ĠĊ]/g, " ").trim().replace(/&(amp|#124|lt|gt|apos|quot|#91|#93);/g, (escape) => ESCAPES[escape]);
}

/**
 * How much each target word attended to each source word: the mean over its pieces of the sum over the source word's pieces.
 * attention: [target pieces][source pieces].
 */
export function betweenWords(attention, targets, sources) {
  return targets.map(({ places }) =>
    sources.map((source) => {
      const rows = places.map((row) => source.places.reduce((sum, column) => sum + (attention[row]?.[column] ?? 0), 0));
      return rows.reduce((sum, each) => sum + each, 0) / rows.length;
    }),
  );
}
