"""Two models on the lines of one test set: the score of each line, and whether the difference of the whole could be chance."""

from __future__ import annotations

from typing import NamedTuple

FEWEST = 10  # lines that must differ: with fewer, resampling says nothing


class Paired(NamedTuple):
    """The scores of two models: of all lines together (`totals`), and for each line (`lines`), always the first model's first.

    More is better. `measure` says what was measured. `p` is the probability of a difference at least as large where the models are
    equally good, by `test`; None where fewer than `FEWEST` lines differ, or where the measure cannot measure this text.
    """

    measure: str
    totals: tuple[float, float]
    lines: list[tuple[float, float]]
    p: float | None = None
    test: str = ""

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many lines the first model has better, how many the second, and how many have equal scores."""
        first, second = (sum(each[place] > each[1 - place] for each in self.lines) for place in (0, 1))
        return first, second, len(self.lines) - first - second
