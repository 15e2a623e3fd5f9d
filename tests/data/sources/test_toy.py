"""The toy language is the same in every version, and has the documented form."""

import hashlib
from collections import defaultdict

import numpy as np
import pytest

from one_layer.data.sources.toy import grammar as toy

Corpus = dict[str, tuple[list[str], list[str]]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Smaller than the default: the run-time type checks of these tests make the generator ten times slower."""
    return toy.generate(seed=0, train=5000, valid=300, test=500)


def pairs(corpus: Corpus) -> list[tuple[str, str]]:
    return [pair for sides in corpus.values() for pair in zip(*sides, strict=True)]


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
