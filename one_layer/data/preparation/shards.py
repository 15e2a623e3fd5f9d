"""Prepares a parallel corpus that is too large for memory, in shards: tokenises, counts, splits by BPE, filters and joins them.

A shard is some ten thousand pairs in its own files. A file gets its name only when it is complete, and existing files are not made
again, so an interrupted preparation continues where it stopped. Memory holds a few shards and, once, the counts of all words.
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
from one_layer.system.files import write_atomically

log = logging.getLogger(__name__)
PARTS = ("train", "valid")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class ShardedPreparation:
    """How the pairs of a training text become the files {train,valid}.{language}.

    folder: holds the shards.
    steps: the preprocessing of source and target, without codes.
    length_filter: applied to the lines after BPE.
    merges: the number of BPE merges to learn.
    valid_every: every `valid_every`-th pair (counted before filtering) goes to the validation set.
    shard_size: pairs per shard.
    processes: the number of processes to use.
    """

    folder: Path
    steps: tuple[Preprocessing, Preprocessing]
    length_filter: LengthFilter
    merges: int
    valid_every: int
    shard_size: int = 50_000
    processes: int = 1

    def run(self, pairs: Iterable[tuple[str, str]], out: Path) -> tuple[list[Path], dict[str, int]]:
        """Prepares raw `pairs` and writes the BPE codes (`code`) and two files each for train and valid into the folder `out`.

        Returns: the paths of these files, and the numbers of pairs kept ("train", "valid") and left out ("empty", "long", ...).
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
        """Makes the missing shards. Returns: the number of all shards."""
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
        """Writes the words of both sides of a shard. Returns: the number of the shard."""
        number, pairs = job
        for side in (0, 1):
            _write(self.words(number)[side], self.steps[side].words(pair[side] for pair in pairs))
        return number

    def _learn(self, shards: int) -> str:
        """Learns the BPE codes on the training part of all shards, or reads them if they were already learned."""
        path = self.folder / "code"
        if not path.exists():
            counts: Counter[str] = Counter()
            for found in in_order(self.count_shard, range(shards), self.processes):
                counts.update(found)
            log.info("learning BPE on %d different words", len(counts))
            write_atomically(path, learn_bpe_from_counts(counts, self.merges))
        return path.read_text(encoding="utf-8")

    def count_shard(self, number: int) -> Counter[str]:
        """Counts each word in the training part of a shard."""
        return count_words(chain.from_iterable(pair for part, pair in self.words_of(number) if part == "train"))

    def words_of(self, number: int) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yields every pair of a tokenised shard with its part ("train" or "valid")."""
        first = number * self.shard_size + 1
        for place, pair in enumerate(zip(*read_parallel(*self.words(number)), strict=True), start=first):
            yield ("train" if place % self.valid_every else "valid"), pair

    def words(self, number: int) -> tuple[Path, Path]:
        """Returns the files of a tokenised shard. The second file is written last, so it marks the shard as complete."""
        return self._paths(number, "words")

    def subwords(self, number: int, part: str) -> tuple[Path, Path]:
        """Returns the files of a finished shard's pairs of `part` ("train" or "valid")."""
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
    """Splits a tokenised shard by BPE and filters it. It is an object so that it can be sent to other processes."""

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
