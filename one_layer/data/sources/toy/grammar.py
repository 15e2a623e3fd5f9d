"""The toy language: a translation task that a small grammar generates, from a German-like into an English-like language.

The grammar is synchronous: a construction is drawn once, as a `Clause`, and written in both languages. The differences between the
languages make the task worth learning: gender, case and number on German articles and adjectives, verb-second main clauses,
verb-final subordinate and relative clauses, separable verbs, tenses and modals that bracket the clause, and `do` in English.

Some words have two translations (see lexicon.py), and another word, often far away, decides between them: "macht ... auf" opens and
"macht ... aus" turns off, "sie" is she or they depending on its verb, a "schloss" is visited (castle) or closed (lock). Every German
sentence has exactly one translation, so a model can reach 100 BLEU.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

import numpy as np

from one_layer.data.sources.toy import lexicon
from one_layer.data.sources.toy.clause import (
    NOTHING,
    PRONOUNS,
    Clause,
    Phrase,
    english_clause,
    german_main,
    german_verb_last,
    join,
)
from one_layer.data.sources.toy.lexicon import Noun

LENGTHS = range(3, 21)  # tokens per sentence in both languages, including the full stop
SPLITS = ("train",) * 18 + ("valid", "test")  # the next sentence's split is drawn, so all splits have one distribution

T = TypeVar("T")


class Draws:
    """Random choices from raw Philox words, which are the same in every NumPy version (Generator's methods may change)."""

    def __init__(self, seed: int) -> None:
        digest = hashlib.blake2b(f"{seed}/toy".encode(), digest_size=16).digest()
        philox = np.random.Philox(key=int.from_bytes(digest, "little"))
        self._words = (word for _ in count() for word in philox.random_raw(4096).tolist())

    def below(self, bound: int) -> int:
        """Draws an integer in [0, bound)."""
        return next(self._words) % bound

    def chance(self, percent: int) -> bool:
        return next(self._words) % 100 < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[next(self._words) % len(options)]


def noun_phrase(draws: Draws, noun: Noun, case: str, relative: bool) -> Phrase:
    """Draws a phrase of `noun` with an article, perhaps an adjective and, if `relative`, perhaps a relative clause."""
    plural = case != "dative" and draws.chance(30)
    definite = draws.chance(65)
    form = "p" if plural else noun.gender
    article = (lexicon.DEFINITE if definite else lexicon.INDEFINITE)[case][form]
    ending = (lexicon.DEFINITE_ENDINGS if definite else lexicon.INDEFINITE_ENDINGS)[case][form]
    stem, translation = adjective(draws, noun)
    german = join(article, stem and stem + ending, noun.german_plural if plural else noun.german)
    english = join(translation, noun.english_plural if plural else noun.english)
    english = join("the" if definite else "" if plural else "an" if english[0] in "aeiou" else "a", english)
    phrase = Phrase(german, english, plural, form == "m", definite)
    return relative_clause(draws, noun, phrase) if relative and draws.chance(12) else phrase


def adjective(draws: Draws, noun: Noun) -> tuple[str, str]:
    """Draws a German stem and its translation, which depends on the noun; both are empty in most cases."""
    if not draws.chance(30):
        return "", ""
    stem = draws.pick(tuple(lexicon.ADJECTIVES))
    translation = lexicon.ADJECTIVES[stem][noun.kind != "person"]
    return (stem, translation) if translation else ("", "")


def relative_clause(draws: Draws, noun: Noun, head: Phrase) -> Phrase:
    """Adds to `head` a relative clause in which it is the subject ("der schläft") or the object ("den der mann sieht")."""
    form = "p" if head.plural else noun.gender
    who, whom = ("who", "whom") if noun.kind == "person" else ("that", "that")
    if noun.kind in lexicon.ANIMATE and draws.chance(60):
        pronoun = Phrase(lexicon.DEFINITE["nominative"][form], who, head.plural)
        clause = replace(simple_clause(draws, relative=False), subject=pronoun)
        other, lead = clause.object, NOTHING
    else:
        fitting = tuple(verb for verb in lexicon.TRANSITIVE if noun.kind in verb.objects)
        clause = modified(draws, Clause(subject(draws, relative=False), draws.pick(fitting)))
        other, lead = clause.subject, Phrase(lexicon.DEFINITE["accusative"][form], whom)
    if not (head.shows_case or other.shows_case or other == NOTHING):
        return head  # ambiguous without case: in "die frau, die das kind sieht", either may see the other
    german = join(head.german, ",", lead.german, german_verb_last(clause), ",")
    return replace(head, german=german, english=join(head.english, lead.english, english_clause(clause)))


def of_kind(kinds: Sequence[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in lexicon.NOUNS if noun.kind in kinds)


def subject(draws: Draws, relative: bool = True) -> Phrase:
    if draws.chance(25):
        return draws.pick(PRONOUNS)
    return noun_phrase(draws, draws.pick(of_kind(lexicon.ANIMATE)), "nominative", relative)


def adverbial(draws: Draws) -> Phrase:
    german, english, kinds = draws.pick(lexicon.PREPOSITIONS)
    phrase = noun_phrase(draws, draws.pick(of_kind(kinds)), "dative", relative=False)
    words = f"{german} {phrase.german}".replace("in dem ", "im ")
    return Phrase(words, f"{english} {phrase.english}")


def simple_clause(draws: Draws, relative: bool = True) -> Clause:
    """Draws a clause with any verb except the verbs that take another clause."""
    who = subject(draws, relative)
    kind = draws.below(10)
    if kind < 3:
        return modified(draws, Clause(who, draws.pick(lexicon.INTRANSITIVE)))
    verb = draws.pick(lexicon.TRANSITIVE if kind < 9 else lexicon.WITH_RECIPIENT)
    noun = draws.pick(of_kind((draws.pick(verb.objects),)))
    clause = Clause(who, verb, noun_phrase(draws, noun, "accusative", relative))
    if verb in lexicon.WITH_RECIPIENT:
        recipient = noun_phrase(draws, draws.pick(of_kind(("person",))), "dative", relative=False)
        clause = replace(clause, recipient=recipient)
    return modified(draws, clause)


def modified(draws: Draws, clause: Clause) -> Clause:
    """Draws a tense or a modal for `clause`, and perhaps an adverb, a place and a negation."""
    tense = draws.below(10)
    if tense < 3:
        clause = replace(clause, past=True)
    elif tense < 5:
        clause = replace(clause, modal=draws.pick(lexicon.MODALS))
    if draws.chance(30):
        clause = replace(clause, adverb=draws.pick(lexicon.PAST_ADVERBS if clause.past else lexicon.PRESENT_ADVERBS))
    if draws.chance(20 if clause.object == NOTHING else 10):
        clause = replace(clause, place=adverbial(draws))
    return replace(clause, negated=clause.object.definite and not clause.adverb.before_verb and draws.chance(12))


def statement(draws: Draws) -> tuple[str, str]:
    """Draws one main clause. The adverb, or an object that shows its case, may come first instead of the subject."""
    clause = simple_clause(draws)
    front = "subject"
    if clause.adverb.german and draws.chance(50):
        front = "adverb"
    elif clause.object.shows_case and draws.chance(40):
        front = "object"
    return german_main(clause, front) + " .", english_clause(clause) + " ."


def question(draws: Draws) -> tuple[str, str]:
    """Draws a yes-or-no question."""
    clause = simple_clause(draws)
    return german_main(clause, front="") + " ?", english_clause(clause, inverted=True) + " ?"


def question_word(draws: Draws) -> tuple[str, str]:
    """Draws a question that begins with who, where, what or whom."""
    asked = draws.below(3)
    clause = simple_clause(draws)
    if asked == 0:
        clause = replace(clause, subject=Phrase("wer", "who"))
        return german_main(clause) + " ?", english_clause(clause) + " ?"
    word = ("wo", "where")
    if asked == 1:
        clause = replace(clause, place=NOTHING)
    else:
        verb = draws.pick(lexicon.CLEAR_WITHOUT_OBJECT)
        word = ("wen", "whom") if draws.pick(verb.objects) == "person" else ("was", "what")
        clause = modified(draws, Clause(clause.subject, verb))
    german, english = german_main(clause, front=""), english_clause(clause, inverted=True)
    return f"{word[0]} {german} ?", f"{word[1]} {english} ?"


def subordination(draws: Draws) -> tuple[str, str]:
    """Draws a main clause and a subordinate clause, in either order."""
    main, side = simple_clause(draws, relative=False), simple_clause(draws, relative=False)
    german, english = draws.pick(lexicon.CONJUNCTIONS)
    german, english = f"{german} {german_verb_last(side)}", f"{english} {english_clause(side)}"
    if draws.chance(40):
        return f"{german} , {german_main(main, front='')} .", f"{english} , {english_clause(main)} ."
    return f"{german_main(main)} , {german} .", f"{english_clause(main)} {english} ."


def reported(draws: Draws) -> tuple[str, str]:
    """Draws a sentence of the form "somebody says, believes or knows that ..."."""
    main = Clause(subject(draws, relative=False), draws.pick(lexicon.WITH_CLAUSE), past=draws.chance(30))
    side = simple_clause(draws, relative=False)
    german = f"{german_main(main)} , dass {german_verb_last(side)} ."
    return german, f"{english_clause(main)} that {english_clause(side)} ."


CONSTRUCTIONS = (statement,) * 8 + (question,) * 2 + (question_word,) * 3 + (subordination,) * 4 + (reported,) * 3


def sentence(draws: Draws) -> tuple[str, str]:
    """Draws a German sentence and its English translation; both lengths are in LENGTHS."""
    while True:
        german, english = draws.pick(CONSTRUCTIONS)(draws)
        for mark in (",", ".", "?"):  # a relative clause may end together with the clause around it
            german = german.replace(f", {mark}", mark)
        if len(german.split()) in LENGTHS and len(english.split()) in LENGTHS:
            return german, english


def generate(
    seed: int, train: int = 20_000, valid: int = 500, test: int = 500
) -> dict[str, tuple[list[str], list[str]]]:
    """Generates the toy corpus: split name -> (German sentences, English sentences), tokens separated by single spaces.

    The result depends only on the arguments, in every version of Python and NumPy. No German sentence occurs twice, within a
    split or across splits, and no split depends on the size of another.
    """
    draws = Draws(seed)
    wanted = {"train": train, "valid": valid, "test": test}
    corpus: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in wanted}
    seen: set[str] = set()
    while any(len(corpus[name][0]) < size for name, size in wanted.items()):
        german, english = sentence(draws)
        name = draws.pick(SPLITS)
        if german not in seen and len(corpus[name][0]) < wanted[name]:
            corpus[name][0].append(german)
            corpus[name][1].append(english)
        seen.add(german)  # also if its split is full, so that no split depends on the size of another
    return corpus
