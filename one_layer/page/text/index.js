// What a ticket knows of text, as one_layer/data/text/assets.py: lines to the ids that the model reads, and ids to text.
//
// assets: {task, data, source, target}. `task` and `data` are the metadata of these names; `source` and `target` are the two sides of the
// metadata `text`, with the content of the tensors in the place of their names: `codes` (or null) and `vocabulary`.
// tables: what one_layer/data/text/moses_tables.py makes for Moses' rules; null where no side has them.
// Throws: Error with one sentence for what the reader in Python refuses.

import { code, lacksRules } from "./moses.js";
import { Preprocessing } from "./preprocess.js";
import { isBlank, wellFormed } from "./python.js";
import { shownIds, unitOf } from "./units.js";
import { BOS, EOS, UNK } from "./special_tokens.js";
import { Vocabulary } from "./vocabulary.js";

export const MASK = "<mask>";
const LONGEST = 1024; // tokens of a line that is translated
const READERS = { translation: translated, classification: labelled, causal_lm: continued, masked_lm: filled };

// Returns {encode, decode, vocabulary, notes}:
// - encode(line, side = "source"): the ids that the model reads, with their specials. A blank line of a translation is [EOS];
// - decode(ids): the text of the target's ids up to the first EOS, or of any ids of a language model;
// - vocabulary(side): the tokens in the order of their ids;
// - unread(line): a sentence that says how much of a text is too long to be read, or "";
// - shown(side, ids): the tokens of a text's ids for people, in which the letters of bytes are characters;
// - notes: sentences for the person who types.
export function textOf(assets, tables = null) {
  const source = new Vocabulary(assets.source.vocabulary);
  const target = assets.target.vocabulary === assets.source.vocabulary ? source : new Vocabulary(assets.target.vocabulary);
  const sides = {
    source: { vocabulary: source, steps: new Preprocessing(assets.source, source, tables) },
    target: { vocabulary: target, steps: new Preprocessing(assets.target, target, tables) },
  };
  const { whole, decode, longest = Infinity, cut = atEnd, read = "first" } = READERS[assets.task](sides, assets);
  return {
    encode: (line, side = "source") => cut(whole(wellFormed(line), side), longest),
    decode,
    unread: (line) => {
      const { length } = longest < Infinity ? whole(wellFormed(line), "source") : [];
      return length > longest ? `The text has ${length} tokens, of which the model reads ${read && `the ${read} `}${longest}.` : "";
    },
    vocabulary: (side) => sides[side].vocabulary.tokens,
    shown: (side, ids) => shownIds(ids, sides[side].vocabulary.tokens, kindOf(assets, side)),
    notes: notesOf(assets, tables),
  };
}

function kindOf({ data, ...sides }, side) {
  if (data.streamed) return "byte-level";
  return sides[side].codes ? sides[side].bpe_kind : "";
}

// one_layer/tasks/translation/model.py: TranslationModel.translate
function translated(sides) {
  return {
    longest: LONGEST,
    whole: (line, side) => {
      const { vocabulary, steps } = sides[side];
      return composed(line, (text) => vocabulary.encode(isBlank(text) ? "" : steps.apply(text)));
    },
    decode: (ids) => sides.target.steps.undo(sides.target.vocabulary.decode(ids)).replace(/\r\n|[\r\n]/g, " "),
  };
}

// one_layer/tasks/classification/model.py: ClassificationModel.classify. A tab is between two texts.
function labelled({ source, target }, { data }) {
  return {
    longest: data.max_length,
    cut: cutTexts,
    read: "", // of two texts, the beginning of each
    whole: (line) => composed(line, (text) => source.vocabulary.encodeTexts(source.steps.apply(text))),
    decode: (ids) => target.vocabulary.decode(ids),
  };
}

// one_layer/tasks/causal_lm/model.py: CausalLanguageModel._prompt
function continued({ source, target }, { data }) {
  const unit = unitOf(data.unit, target.vocabulary, source.steps.codes);
  const cut = (ids) => [EOS, ...ids].slice(-data.block);
  return { longest: data.block, cut, read: "last", whole: (line) => unit.ids(line), decode: (ids) => unit.text(ids) };
}

// one_layer/tasks/masked_lm/model.py: MaskedLanguageModel._encoded
function filled({ source, target }, { data }) {
  const unit = unitOf(data.unit, target.vocabulary, source.steps.codes);
  const mask = target.vocabulary.ids.get(MASK);
  if (mask === undefined) throw new Error(`the ticket's vocabulary has no ${MASK}, which a masked language model needs`);
  const whole = (line) => {
    const parts = line.split(MASK);
    if (parts.length === 1) throw new Error(`The line has no ${MASK}; put one where a token is wanted.`);
    const last = parts.pop();
    const before = data.unit === "bpe" ? parts.map((part) => part.replace(/\p{White_Space}+$/u, "")) : parts;
    const ids = [BOS, ...before.flatMap((part) => [...unit.ids(part), mask]), ...unit.ids(last), EOS];
    if (ids.length > data.block) {
      throw new Error(`The line has ${ids.length} tokens, but the context has ${data.block}; give a shorter line.`);
    }
    return ids;
  };
  return { whole, decode: (ids) => unit.text(ids) };
}

// one_layer/data/text/marks.py: composed
function composed(line, encode) {
  const given = encode(line), nfc = line.normalize("NFC"), other = nfc === line ? given : encode(nfc);
  const unknown = (ids) => ids.filter((id) => id === UNK).length, fewer = unknown(other) - unknown(given) || other.length - given.length;
  return fewer < 0 ? other : given;
}

// one_layer/data/tokens.py: cut
function atEnd(ids, longest) {
  return ids.length <= longest ? ids : [...ids.slice(0, longest - 1), EOS];
}

// one_layer/data/tokens.py: cut_texts
function cutTexts(ids, longest) {
  const end = ids.indexOf(EOS);
  if (ids.length <= longest || end === ids.length - 1) return atEnd(ids, longest);
  const [first, second] = [ids.slice(1, end), ids.slice(end + 2, -1)];
  const left = longest - (ids.length - first.length - second.length);
  const ofFirst = Math.min(first.length, Math.max(Math.ceil(left / 2), left - second.length));
  return [ids[0], ...first.slice(0, ofFirst), EOS, EOS, ...second.slice(0, left - ofFirst), EOS];
}

function notesOf({ task, source, target }, tables) {
  const notes = [];
  if (lacksRules(source, tables)) {
    notes.push(`This page has no rules for text in the language ${code(source.language)}: type tokens as Moses' tokenizer writes them.`);
  }
  if (task === "translation" && lacksRules(target, tables)) {
    notes.push(`Translations are shown as tokens, because this page has no rules for text in the language ${code(target.language)}.`);
  }
  if (source.lowercase) notes.push("Upper and lower case make no difference to this model.");
  return notes;
}
