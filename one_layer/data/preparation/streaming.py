"""Preprocesses a training text in chunks: in several processes, in order, with only the chunks in work in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from tqdm import tqdm

from one_layer.data.preparation.parallel import chunks, cores, in_order
from one_layer.data.preparation.spill import Spill
from one_layer.data.text.preprocess import METASPACE, Preprocessing, count_words

Steps = tuple[Preprocessing, Preprocessing]  # source and target
Sides = tuple[Iterable[str], Iterable[str]]  # source and target, with equally many lines; can be read more than once

_CHUNK = 2_000  # pairs that a process handles at a time
# Up to this many pairs, one process finishes before others would have started: with Moses' tokenisation, and without.
_FEW = {True: 10_000, False: 200_000}


def shown(lines: Iterable[str], phase: str, total: int | None = None) -> Iterator[str]:
    """Lines with a progress bar, which appears only if standard error is a terminal."""
    yield from tqdm(lines, phase, total, unit=" lines", disable=None, leave=False)


def words(sides: Sides, pairs: int, steps: Steps) -> tuple[Sides, Counter[str]]:
    """Applies the first half of the steps. Returns: the lines, and the count of each word over both sides."""
    counts: Counter[str] = Counter()
    return _done(sides, pairs, steps, "words", "making words", counts), counts


def subwords(sides: Sides, pairs: int, steps: Steps) -> Sides:
    """Applies the second half of the steps and returns the lines."""
    return _done(sides, pairs, steps, "subwords", "splitting words")


def applied(sides: Sides, pairs: int, steps: Steps) -> Sides:
    """Applies all the steps; returns the sides unchanged if no step is switched on."""
    if not any(step.tokenize or step.lowercase or step.codes or step.bpe_kind == METASPACE for step in steps):
        return sides
    return _done(sides, pairs, steps, "apply", "preparing text")


def _done(sides: Sides, pairs: int, steps: Steps, part: str, phase: str, counts: Counter[str] | None = None) -> Sides:
    """The lines after the method `part` of the steps, in unnamed temporary files. Adds the count of each word to `counts`."""
    tokenizing = part != "subwords" and any(step.tokenize for step in steps)
    processes = 1 if pairs <= _FEW[tokenizing] else cores()
    work = partial(_work, steps, part, counts is not None)
    results = Spill(), Spill()
    with tqdm(total=pairs, desc=phase, unit=" pairs", disable=None, leave=False) as bar:
        for lines, found in in_order(work, chunks(zip(*sides, strict=True), _CHUNK), processes):
            for result, side in zip(results, lines, strict=True):
                result.write(side)
            if counts is not None:
                counts.update(found)
            bar.update(len(lines[0]))
    return results


def _work(steps: Steps, part: str, counted: bool, pairs: list[tuple[str, str]]) -> tuple[list[list[str]], Counter[str]]:
    """The work on a chunk of pairs, which other processes may do."""
    sides = [getattr(step, part)(lines) for step, lines in zip(steps, zip(*pairs, strict=True), strict=True)]
    texts = chain.from_iterable(step.texts(side) for step, side in zip(steps, sides, strict=True))
    return sides, count_words(texts) if counted else Counter()
