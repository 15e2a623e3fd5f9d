"""The measures that figures show."""

from __future__ import annotations

from typing import NamedTuple

from one_layer.runs.convergence import LESS_IS_BETTER


class Measure(NamedTuple):
    """A measure: its name for people, and whether less of it is better."""

    name: str
    less_is_better: bool


# By their keys in the scores. Of several, a figure shows the first.
_NAMES = {
    "bleu_tokenized": "tokenised BLEU",
    "accuracy": "accuracy",
    "matthews": "Matthews' correlation",
    "nll": "nll",
}
MEASURES = {key: Measure(name, key in LESS_IS_BETTER) for key, name in _NAMES.items()}
