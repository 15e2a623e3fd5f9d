/** Lines to begin with. They are this project's own. */

const LINES = {
  translation: {
    en: [
      "Two dogs run through the snow.",
      "A woman in a red coat is reading a book on a bench.",
      "Three children are playing football in front of a church.",
      "An old man is playing the guitar on the street.",
    ],
    de: ["Zwei Hunde rennen durch den Schnee.", "Eine Frau in einem roten Mantel liest auf einer Bank.", "Drei Kinder spielen vor einer Kirche Fußball."],
    fr: ["Deux chiens courent dans la neige.", "Une femme en manteau rouge lit sur un banc."],
    it: ["Due cani corrono nella neve.", "Una donna con un cappotto rosso legge su una panchina."],
  },
  everyday: {
    en: ["How are you?", "I lost my keys.", "Where did you learn German?", "Tom didn't want to go home. He was still hungry."],
    de: ["Wie geht es dir?", "Ich habe meine Schlüssel verloren.", "Wo hast du Englisch gelernt?", "Tom wollte nicht nach Hause gehen. Er hatte noch Hunger."],
  },
  classification: { en: ["a warm and funny film", "the jokes are tired and the story goes nowhere", "beautiful pictures, but far too long"] },
  pairs: { en: ["How do I learn to swim?\tHow can one learn swimming?", "A man sleeps on a bench.\tA man runs."] },
  causal_lm: { en: ["Once upon a time", "The city was founded in", ""] },
  masked_lm: { en: ["The cat <mask> on the mat.", "Paris is the <mask> of France."] },
};

/** The examples for a model; none where there are none in its language. A tab is between two texts. Plain text has no language of its own. */
export function examplesFor({ task, texts, source, cased }) {
  const known = LINES[texts === 2 ? "pairs" : task === "translation" && cased && Object.hasOwn(LINES.everyday, source) ? "everyday" : task];
  const language = source === "text" ? "en" : source.toLowerCase().split(/[-_]/)[0];
  return Object.hasOwn(known, language) ? known[language] : [];
}
