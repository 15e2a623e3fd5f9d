"""The measures that figures show."""

from __future__ import annotations

from typing import NamedTuple

from one_layer.runs.convergence import LESS_IS_BETTER, MAIN_SCORES


class Measure(NamedTuple):
    """A measure: its name for people, and whether less of it is better."""

    name: str
    less_is_better: bool


_NAMES = {
    "bleu_tokenized": "tokenised BLEU",
    "bleu_sacre": "sacreBLEU",
    "accuracy": "accuracy",
    "matthews": "Matthews' correlation",
    "nll": "nll",
}
MEASURES = {key: Measure(_NAMES[key], key in LESS_IS_BETTER) for key in MAIN_SCORES}
