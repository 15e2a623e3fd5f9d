"""The toy language follows its grammar, can be learned completely, and is not trivial."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise, product

import numpy as np
import pytest
import sacrebleu

from one_layer.data.sources.toy import grammar as toy
from one_layer.data.sources.toy import lexicon

Corpus = dict[str, tuple[list[str], list[str]]]

VERBS = lexicon.TRANSITIVE + lexicon.INTRANSITIVE + lexicon.WITH_RECIPIENT + lexicon.WITH_CLAUSE
SEPARABLE = tuple(verb for verb in VERBS if verb.particle)
PARTICLES = {verb.particle for verb in SEPARABLE}
SINGULAR = {verb.singular for verb in VERBS} | {modal.singular for modal in lexicon.MODALS} | {"hat", "ist"}
PLURAL = {verb.infinitive for verb in VERBS} | {modal.plural for modal in lexicon.MODALS} | {"haben", "sind"}
JOINED = {verb.particle + form for verb in SEPARABLE for form in (verb.singular, verb.infinitive)}
ARTICLES = {
    form
    for table in (lexicon.DEFINITE, lexicon.INDEFINITE)
    for forms in table.values()
    for form in forms.values()
    if form
}
RELATIVE = {form for case in ("nominative", "accusative") for form in lexicon.DEFINITE[case].values()}
SUBORDINATING = {german for german, _ in lexicon.CONJUNCTIONS} | {"dass"}

# A noun's form -> the genders that it can have, with p for plural; "mädchen" is both neuter and plural.
GENDERS = defaultdict(set)
for _noun in lexicon.NOUNS:
    GENDERS[_noun.german].add(_noun.gender)
    GENDERS[_noun.german_plural].add("p")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Smaller than the default: the run-time type checks of these tests make the generator ten times slower."""
    return toy.generate(seed=0, train=5000, valid=300, test=500)


@pytest.fixture(scope="module")
def german(corpus: Corpus) -> list[list[str]]:
    return [sentence.split() for source, _ in corpus.values() for sentence in source]


def pairs(corpus: Corpus) -> list[tuple[str, str]]:
    return [pair for sides in corpus.values() for pair in zip(*sides, strict=True)]


# ---- The corpus ------------------------------------------------------------------------------------------------------


def test_sentences_have_the_documented_form(corpus: Corpus) -> None:
    for pair in pairs(corpus):
        for sentence in pair:
            tokens = sentence.split(" ")
            assert 3 <= len(tokens) <= 20
            assert all(tokens) and sentence == sentence.lower()
            assert tokens[-1] in (".", "?") and not {".", "?"} & set(tokens[:-1])
        assert pair[0][-1] == pair[1][-1]
    for side in corpus["train"]:
        assert 8 <= np.mean([len(sentence.split()) for sentence in side]) <= 11


def test_splits_have_their_sizes_and_share_no_sentence(corpus: Corpus) -> None:
    assert {name: len(source) for name, (source, _) in corpus.items()} == {"train": 5000, "valid": 300, "test": 500}
    sources = [source for source, _ in pairs(corpus)]
    assert len(set(sources)) == len(sources)


@pytest.mark.slow
def test_full_corpus_is_the_same_in_another_process() -> None:
    """At the default sizes, and under another hash seed, which changes the order of every set."""
    code = """
import hashlib
from one_layer.data.sources.toy.grammar import generate
corpus = generate(0)
sources = [sentence for source, _ in corpus.values() for sentence in source]
assert [len(corpus[name][side]) for name in ("train", "valid", "test") for side in (0, 1)] == [20000] * 2 + [500] * 4
assert len(set(sources)) == 21000
print(hashlib.sha256(repr(corpus).encode()).hexdigest())
"""
    commands = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
        )
        for hash_seed in ("1", "2")
    ]
    digests = [command.communicate()[0] for command in commands]
    assert [command.returncode for command in commands] == [0, 0]
    assert digests[0] == digests[1] != b""


def test_the_text_depends_only_on_the_seed() -> None:
    small = {"train": 40, "valid": 10, "test": 10}
    first = toy.generate(seed=5, **small)
    assert toy.generate(seed=5, **small) == first
    assert toy.generate(seed=6, **small) != first


def test_no_split_depends_on_the_size_of_another() -> None:
    more, fewer = toy.generate(seed=1, train=300, valid=10, test=30), toy.generate(seed=1, train=20, valid=0, test=30)
    assert more["test"] == fewer["test"]
    assert more["train"][0][:20] == fewer["train"][0]


def test_a_sentence_has_one_translation() -> None:
    draws, translations = toy.Draws(seed=7), defaultdict(set)
    for _ in range(3000):
        source, target = toy.sentence(draws)
        translations[source].add(target)
    assert len(translations) < 3000  # some sentences occur twice
    assert all(len(targets) == 1 for targets in translations.values())


# ---- German ----------------------------------------------------------------------------------------------------------


def fits(article: str, ending: str | None, genders: set[str]) -> bool:
    """Whether `article` and the adjective's `ending` (None: no adjective) agree in some case with a noun of `genders`."""
    tables = ((lexicon.DEFINITE, lexicon.DEFINITE_ENDINGS), (lexicon.INDEFINITE, lexicon.INDEFINITE_ENDINGS))
    return any(
        articles[case].get(gender) == article and ending in (None, endings[case].get(gender))
        for (articles, endings), case, gender in product(tables, lexicon.DEFINITE, genders)
    )


def test_articles_and_adjectives_agree_with_their_noun(german: list[list[str]]) -> None:
    endings = {stem + ending: ending for stem, ending in product(lexicon.ADJECTIVES, ("e", "en", "er", "es"))}
    seen = 0
    for tokens in german:
        for i, article in enumerate(tokens[:-1]):
            relative = i > 1 and tokens[i - 1] == "," and tokens[i - 2] in GENDERS
            particle = article == "ein" and tokens[i + 1] in ".?,"
            if article not in ARTICLES or relative or particle:
                continue
            next_, after = tokens[i + 1 : i + 3]
            ending, noun = (endings[next_], after) if next_ in endings else (None, next_)
            assert fits(article, ending, GENDERS[noun]), tokens
            seen += 1
    assert seen > len(german)


def test_relative_pronouns_agree_with_their_head(german: list[list[str]]) -> None:
    seen = 0
    for tokens in german:
        for head, comma, pronoun in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if head in GENDERS and comma == "," and pronoun in RELATIVE:
                assert fits(pronoun, None, GENDERS[head]), tokens
                seen += 1
    assert seen > 100


def test_prepositions_take_the_dative(german: list[list[str]]) -> None:
    dative = {*lexicon.DEFINITE["dative"].values(), *lexicon.INDEFINITE["dative"].values()}
    for tokens in german:
        for word, next_ in pairwise(tokens):
            if word in ("in", "mit") or (word == "auf" and next_ not in ".?,"):
                assert next_ in dative, tokens


def test_finite_verb_is_second_and_agrees(corpus: Corpus) -> None:
    pronouns = set()
    for source, target in pairs(corpus):
        first, second = source.split()[:2]
        if first in ("er", "sie", "wir"):
            english = target.split()[0]
            assert (first, english) in {("er", "he"), ("sie", "she"), ("sie", "they"), ("wir", "we")}
            assert second in (SINGULAR if english in ("he", "she") else PLURAL), source
            pronouns.add(english)
    assert pronouns == {"he", "she", "they", "we"}


def test_particle_stands_at_the_end_of_its_main_clause(german: list[list[str]]) -> None:
    always_separable = {"macht", "machen", "zieht", "ziehen", "ruft", "rufen", "steht", "stehen"}
    seen = 0
    for tokens in german:
        if "," not in tokens and always_separable & set(tokens):
            assert tokens[-2] in PARTICLES, tokens
            seen += 1
        for word, next_ in pairwise(tokens):
            if word in PARTICLES - {"auf", "ein"}:  # "auf" is also a preposition, and "ein" an article
                assert next_ in ".?,", tokens
    assert seen > 100


def test_subordinate_and_relative_clauses_end_in_their_finite_verb(german: list[list[str]]) -> None:
    seen = 0
    for tokens in german:
        head = ""
        for clause in " ".join(tokens[:-1]).split(" , "):
            words = clause.split()
            if words[0] in SUBORDINATING or (head in GENDERS and words[0] in RELATIVE):
                assert words[-1] in SINGULAR | PLURAL | JOINED, tokens
                seen += 1
            head = words[-1]
    assert seen > 1000


# ---- Ambiguity -------------------------------------------------------------------------------------------------------


def ambiguous_words() -> dict[str, set[str]]:
    """Returns, for each ambiguous German word, its possible translations."""
    translations = defaultdict(set)
    for noun in lexicon.NOUNS:
        translations[noun.german].add(noun.english)
    for verb in VERBS:
        if not verb.particle:
            translations[verb.participle].add(verb.past)
    translations.update({"sie": {"she", "they"}, "macht": {"opens", "closes", "turns"}, "große": {"tall", "big"}})
    return {word: meanings for word, meanings in translations.items() if len(meanings) > 1}


def test_each_meaning_of_an_ambiguous_word_occurs(corpus: Corpus) -> None:
    ambiguous = ambiguous_words()
    assert {"schloss", "bank", "birne", "getragen", "gefahren", "sie"} <= set(ambiguous)
    targets = [(source.split(), set(target.split())) for source, target in pairs(corpus)]
    for word, meanings in ambiguous.items():
        alone = [target & meanings for source, target in targets if source.count(word) == 1]
        for meaning in meanings:
            assert {meaning} in alone, (word, meaning)


def test_no_verb_or_preposition_takes_two_meanings_of_a_noun() -> None:
    takers = [verb.objects for verb in VERBS] + [kinds for _, _, kinds in lexicon.PREPOSITIONS]
    for one, other in product(lexicon.NOUNS, repeat=2):
        same = {one.german, one.german_plural} & {other.german, other.german_plural}
        if same and one.english != other.english:
            assert not any({one.kind, other.kind} <= set(kinds) for kinds in takers), (one, other)


def test_verbs_with_the_same_forms_take_different_objects() -> None:
    for one, other in product(VERBS, repeat=2):
        if one is not other and (one.particle, one.infinitive) == (other.particle, other.infinitive):
            assert not set(one.objects) & set(other.objects), (one, other)


# ---- Worth learning --------------------------------------------------------------------------------------------------


def bleu(hypotheses: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score


def best_words(sources: list[str], targets: list[str]) -> dict[str, tuple[str, float]]:
    """Returns, for each German word, its most likely English word and the expected number of that word per occurrence.

    IBM model 1 with an empty source word (Brown et al. 1993, section 4.1), ten rounds of expectation maximisation.
    """
    german = {word: i for i, word in enumerate(["", *sorted({word for text in sources for word in text.split()})])}
    english = {word: i for i, word in enumerate(sorted({word for text in targets for word in text.split()}))}
    cells: list[np.ndarray] = []
    positions: list[np.ndarray] = []
    occurrences = np.zeros(len(german))
    for source, target in zip(sources, targets, strict=True):
        candidates = np.array([german[word] for word in ["", *source.split()]])
        np.add.at(occurrences, candidates, 1)
        for word in target.split():
            positions.append(np.full(len(candidates), len(positions)))
            cells.append(candidates * len(english) + english[word])
    cell, position = np.concatenate(cells), np.concatenate(positions)
    table = np.ones((len(german), len(english)))
    for _ in range(10):
        share = table.ravel()[cell]
        share /= np.bincount(position, share)[position]
        counts = np.bincount(cell, share, table.size).reshape(table.shape)
        table = counts / counts.sum(axis=1, keepdims=True)
    names, best = list(english), counts.argmax(axis=1)
    return {word: (names[best[i]], counts[i].max() / occurrences[i]) for word, i in german.items()}


def test_copying_scores_under_10_bleu(corpus: Corpus) -> None:
    assert bleu(*corpus["test"]) < 10


def test_word_for_word_dictionary_scores_under_60_bleu(corpus: Corpus) -> None:
    """For every choice of words that the dictionary leaves out; the best choice is made on the test set itself."""
    dictionary = best_words(*corpus["train"])
    assert dictionary["frau"][0] == "woman" and dictionary["nicht"][0] == "not"
    sources, references = corpus["test"]
    scores = []
    for least in np.arange(0.0, 0.8, 0.1):
        words = {word: english for word, (english, expected) in dictionary.items() if expected >= least}
        hypotheses = [[words[word] for word in source.split() if word in words] for source in sources]
        scores.append(bleu([" ".join(hypothesis) for hypothesis in hypotheses], references))
    assert bleu(*corpus["test"]) < max(scores) < 60
