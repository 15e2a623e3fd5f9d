"""The measures that figures show."""

from __future__ import annotations

from typing import NamedTuple


class Measure(NamedTuple):
    """A measure: its name for people, and whether less of it is better."""

    name: str
    less_is_better: bool = False


# By their keys in the scores. Of several, a figure shows the first.
MEASURES = {
    "bleu_tokenized": Measure("tokenised BLEU"),
    "accuracy": Measure("accuracy"),
    "matthews": Measure("Matthews' correlation"),
    "nll": Measure("nll", less_is_better=True),
}
