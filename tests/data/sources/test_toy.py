"""The toy language is the same in every version, can be learned completely, and is not trivial."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import sacrebleu

from one_layer.data.sources.toy import grammar as toy
from one_layer.data.sources.toy import lexicon

Corpus = dict[str, tuple[list[str], list[str]]]

VERBS = lexicon.TRANSITIVE + lexicon.INTRANSITIVE + lexicon.WITH_RECIPIENT + lexicon.WITH_CLAUSE


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Smaller than the default: the run-time type checks of these tests make the generator ten times slower."""
    return toy.generate(seed=0, train=5000, valid=300, test=500)


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


def test_the_text_is_the_one_with_which_stored_runs_were_trained(corpus: Corpus) -> None:
    """Results recognise their text by its ids. Strings are hashed, whose order in sets differs between processes."""
    digest = hashlib.sha256(repr(corpus).encode()).hexdigest()
    assert digest == "a96531372b0b5bcafcd491e6a1da8097cf07a9d5c2a25ac2720497616aed33c5"


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
