"""A parallel corpus too large for memory, prepared in shards: tokenised, counted, split by BPE, filtered and put together.

A shard is some ten thousand pairs in files of its own, which get their names when they are whole. What is there already is not
made again, so that preparation goes on where it was interrupted. In memory are a few shards, and once the counts of all words.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from one_layer.data.preparation.parallel import chunks, in_order
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.cleaning import LengthFilter
from one_layer.data.text.lines import read_parallel
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.files import write_atomically

log = logging.getLogger(__name__)
PARTS = ("train", "valid")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class ShardedPreparation:
    """How the pairs of a training text become the files {train,valid}.{language}.

    folder: for the shards. steps: of source and target, without codes. length_filter: on what BPE gives. valid_every: every so
    manieth pair, counted before filtering, goes to valid. shard_size: pairs.
    """

    folder: Path
    steps: tuple[Preprocessing, Preprocessing]
    length_filter: LengthFilter
    merges: int
    valid_every: int
    shard_size: int = 50_000
    processes: int = 1

    def run(self, pairs: Iterable[tuple[str, str]], out: Path) -> tuple[list[Path], dict[str, int]]:
        """Prepares raw `pairs` into the folder `out`: `code`, and two files each of train and valid.

        Returns: their paths, and the numbers of pairs kept ("train", "valid") and left out ("empty", "long", ...).
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        shards = self._tokenize(pairs)
        codes = self._learn(shards)
        write_atomically(out / "code", codes)
        counts: Counter[str] = Counter()
        for number, found in enumerate(in_order(_Split(self, codes), range(shards), self.processes), start=1):
            counts.update(found)
            log.info("split %d of %d shards by BPE", number, shards)
        return [out / "code", *(path for part in PARTS for path in self._join(part, shards, out))], dict(counts)

    def _tokenize(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Makes the shards that are missing. Returns: how many there are."""
        shards = 0

        def missing() -> Iterator[tuple[int, Pairs]]:
            nonlocal shards
            for number, shard in enumerate(chunks(pairs, self.shard_size)):
                shards = number + 1
                if not self.words(number)[1].exists():
                    yield number, shard

        for number in in_order(self.tokenize_shard, missing(), self.processes):
            log.info("tokenised %d pairs", (number + 1) * self.shard_size)
        return shards

    def tokenize_shard(self, job: tuple[int, Pairs]) -> int:
        """Writes both sides of a shard as words. Returns: its number."""
        number, pairs = job
        for side in (0, 1):
            _write(self.words(number)[side], self.steps[side].words(pair[side] for pair in pairs))
        return number

    def _learn(self, shards: int) -> str:
        """The BPE codes of the training part of all shards."""
        path = self.folder / "code"
        if not path.exists():
            counts: Counter[str] = Counter()
            for found in in_order(self.count_shard, range(shards), self.processes):
                counts.update(found)
            log.info("learning BPE on %d different words", len(counts))
            write_atomically(path, learn_bpe_from_counts(counts, self.merges))
        return path.read_text(encoding="utf-8")

    def count_shard(self, number: int) -> Counter[str]:
        """How often each word stands in the training part of a shard."""
        return count_words(chain.from_iterable(pair for part, pair in self.words_of(number) if part == "train"))

    def words_of(self, number: int) -> Iterator[tuple[str, tuple[str, str]]]:
        """Every pair of a tokenised shard, with the part that it belongs to."""
        first = number * self.shard_size + 1
        for place, pair in enumerate(zip(*read_parallel(*self.words(number)), strict=True), start=first):
            yield ("train" if place % self.valid_every else "valid"), pair

    def words(self, number: int) -> tuple[Path, Path]:
        """The files of a tokenised shard; the second is made last."""
        return self._paths(number, "words")

    def subwords(self, number: int, part: str) -> tuple[Path, Path]:
        """The files of a finished shard's train or valid pairs."""
        return self._paths(number, part)

    def _paths(self, number: int, kind: str) -> tuple[Path, Path]:
        source, target = (self.folder / f"{number:05}.{kind}.{step.language}" for step in self.steps)
        return source, target

    def _join(self, part: str, shards: int, out: Path) -> list[Path]:
        paths = []
        for side, step in enumerate(self.steps):
            paths.append(out / f"{part}.{step.language}")
            whole = out / f"{part}.{step.language}.part"
            with whole.open("wb") as file:
                for number in range(shards):
                    with self.subwords(number, part)[side].open("rb") as shard:
                        shutil.copyfileobj(shard, file)
            os.replace(whole, paths[-1])
        return paths


@dataclass(frozen=True)
class _Split:
    """Splits a tokenised shard by BPE and filters it; an object, so that other processes can be given it."""

    preparation: ShardedPreparation
    codes: str

    def __call__(self, number: int) -> dict[str, int]:
        done = self.preparation.folder / f"{number:05}.json"
        if done.exists():
            return json.loads(done.read_text())
        kept: dict[str, Pairs] = {part: [] for part in PARTS}
        counts: Counter[str] = Counter()
        rows = list(self.preparation.words_of(number))
        steps = [replace(step, codes=self.codes) for step in self.preparation.steps]
        sides = [step.subwords(pair[side] for _, pair in rows) for side, step in enumerate(steps)]
        for (part, _), pair in zip(rows, zip(*sides, strict=True), strict=True):
            reason = self.preparation.length_filter.reason(*pair)
            counts[reason or part] += 1
            if not reason:
                kept[part].append(pair)
        for part in PARTS:
            for side, path in enumerate(self.preparation.subwords(number, part)):
                _write(path, [pair[side] for pair in kept[part]])
        write_atomically(done, json.dumps(counts))
        return counts


def _write(path: Path, lines: Iterable[str]) -> None:
    write_atomically(path, "".join(line + "\n" for line in lines))
