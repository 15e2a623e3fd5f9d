"""What is done to a training text, piece by piece: in several processes, in order, and never more in memory than is worked on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from tqdm import tqdm

from one_layer.data.preparation.parallel import chunks, cores, in_order
from one_layer.data.preparation.spill import Spill
from one_layer.data.text.preprocess import Preprocessing, count_words

Steps = tuple[Preprocessing, Preprocessing]  # of source and target
Sides = tuple[Iterable[str], Iterable[str]]  # as many lines each; they can be read more than once

_CHUNK = 2_000  # pairs that a process works on at a time
# So few pairs are done in this process before others have even begun: with Moses' tokenisation, and without.
_FEW = {True: 10_000, False: 200_000}


class Shown:
    """Lines, with a progress bar for people who wait for them; none where standard error is no terminal."""

    def __init__(self, lines: Iterable[str], phase: str, total: int | None = None) -> None:
        self._lines, self._phase, self._total = lines, phase, total

    def __iter__(self) -> Iterator[str]:
        yield from tqdm(self._lines, self._phase, self._total, unit=" lines", disable=None, leave=False)


def count_lines(sides: Sides) -> tuple[int, int]:
    """The lines of both sides: a first look, in which whatever cannot be read is found before hours of work."""
    source, target = (sum(1 for _ in Shown(side, "reading")) for side in sides)
    return source, target


def words(sides: Sides, pairs: int, steps: Steps) -> tuple[Sides, Counter[str]]:
    """The first half of the steps, and how often each word then stands in both sides together."""
    counts: Counter[str] = Counter()
    return _done(sides, pairs, _Work(steps, "words", counted=True), "making words", counts), counts


def subwords(sides: Sides, pairs: int, steps: Steps) -> Sides:
    """The second half of the steps."""
    return _done(sides, pairs, _Work(steps, "subwords"), "splitting words")


def applied(sides: Sides, pairs: int, steps: Steps) -> Sides:
    """All the steps; the sides themselves where there is nothing to be done."""
    if not any(step.tokenize or step.lowercase or step.codes for step in steps):
        return sides
    return _done(sides, pairs, _Work(steps, "apply"), "preparing text")


@dataclass(frozen=True)
class _Work:
    """What is done to some pairs; an object, so that other processes can be given it."""

    steps: Steps
    part: str  # of the steps, a method's name
    counted: bool = False

    def __call__(self, pairs: list[tuple[str, str]]) -> tuple[list[list[str]], Counter[str]]:
        sides = [
            getattr(step, self.part)(lines) for step, lines in zip(self.steps, zip(*pairs, strict=True), strict=True)
        ]
        texts = chain.from_iterable(step.texts(side) for step, side in zip(self.steps, sides, strict=True))
        return sides, count_words(texts) if self.counted else Counter()


def _done(sides: Sides, pairs: int, work: _Work, phase: str, counts: Counter[str] | None = None) -> Sides:
    tokenizing = work.part != "subwords" and any(step.tokenize for step in work.steps)
    processes = 1 if pairs <= _FEW[tokenizing] else cores()
    results = Spill(), Spill()
    with tqdm(total=pairs, desc=phase, unit=" pairs", disable=None, leave=False) as bar:
        for lines, found in in_order(work, chunks(zip(*sides, strict=True), _CHUNK), processes):
            for result, side in zip(results, lines, strict=True):
                result.write(side)
            if counts is not None:
                counts.update(found)
            bar.update(len(lines[0]))
    return results
