// Byte pair encoding (Sennrich et al. 2016, arXiv 1508.07909, section 3.2): joins neighbours, the pair with the lowest rank first.

// ranks: Map of `left right` to a number. Merges one pair at a time, at its first place, as the library tokenizers does; with `everywhere`,
// at all its places before the next pair is looked for, as subword-nmt does. Ranks are kept beside the symbols, so that a step looks up
// only the new neighbours.
export function merged(symbols, ranks, everywhere = false) {
  const word = [...symbols];
  const rank = (place) => (place + 1 < word.length ? (ranks.get(`${word[place]} ${word[place + 1]}`) ?? Infinity) : Infinity);
  const found = word.map((_, place) => rank(place));
  const join = (place) => {
    word.splice(place, 2, word[place] + word[place + 1]);
    found.splice(place, 1);
    for (const near of [place - 1, place]) if (near >= 0) found[near] = rank(near);
  };
  for (;;) {
    const best = found.reduce((least, each) => Math.min(least, each), Infinity);
    if (best === Infinity) return word;
    const first = found.indexOf(best);
    if (!everywhere) {
      join(first);
      continue;
    }
    const pair = `${word[first]} ${word[first + 1]}`;
    for (let place = first; place + 1 < word.length; place++) if (`${word[place]} ${word[place + 1]}` === pair) join(place);
  }
}

// A function of a word that keeps its results, because words come back; `most` bounds the memory.
export function kept(split, most = 20000) {
  const known = new Map();
  return (word) => {
    let found = known.get(word);
    if (found === undefined) {
      found = split(word);
      if (known.size >= most) known.clear();
      known.set(word, found);
    }
    return found;
  };
}

// The pairs [left, right] of a file of merges, whose first line may give a version. Throws: Error that names the first wrong line.
export function pairsOf(merges) {
  const lines = merges.replace(/\n$/, "").split("\n");
  const first = lines[0].startsWith("#version:") ? 1 : 0;
  if (!lines.slice(first).some((line) => line)) throw new Error("the ticket's codes hold no merges");
  return lines.slice(first).map((line, index) => {
    const pair = line.split(" ");
    if (pair.length !== 2 || !pair[0] || !pair[1]) throw wrongLine(index + first + 1, line);
    return pair;
  });
}

export function wrongLine(number, line) {
  return new Error(`the ticket's codes, line ${number}: ${JSON.stringify(line.slice(0, 200))} is not two symbols separated by one space`);
}
