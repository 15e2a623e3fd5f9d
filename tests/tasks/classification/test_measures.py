"""Scores of classifiers against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.data.corpus import Split
from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.tokens import TokenStore
from one_layer.tasks.classification.scoring import SCORES, accuracy, f1, label_scores, matthews

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30)


@given(PAIRS)
def test_scores_are_their_definitions(pairs: list[tuple[int, int]]) -> None:
    predicted, labels = map(np.array, zip(*pairs, strict=True))
    tp, fp, fn, tn = (pairs.count(pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
    assert accuracy(predicted, labels) == (tp + tn) / len(pairs)
    assert f1(predicted, labels) == (2 * tp / (2 * tp + fp + fn) if tp else 0)
    root = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews(predicted, labels) == pytest.approx((tp * tn - fp * fn) / root if root else 0)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=8))
def test_every_score_of_a_perfect_classifier_is_1_and_one_that_cannot_be_is_left_out(labels: list[int]) -> None:
    split = Split(target=TokenStore.of([np.array([UNK + 1 + label, EOS], np.int32) for label in labels]))
    perfect = np.log(np.array([[1.0 - label, label] for label in labels], np.float32) * 0.8 + 0.1)
    found = label_scores(perfect, split, tuple(SCORES))
    assert all(found[name] == pytest.approx(1) for name in found.keys() - {"nll"})
    assert found.keys() == {"nll", "accuracy", *["f1"] * (1 in labels), *["matthews"] * (len(set(labels)) == 2)}


def test_matthews_is_a_correlation() -> None:
    labels = np.array([0, 1] * 400_000 + [1])  # products that int32 would not hold
    assert matthews(labels, labels) == pytest.approx(1) and matthews(1 - labels, labels) == pytest.approx(-1)
    assert matthews(np.zeros_like(labels), labels) == 0
