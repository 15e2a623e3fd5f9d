"""Takes validation and test sets out of a training text that comes in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source
from one_layer.system.errors import UserError


class HeldOut(Source):
    """A source whose parts `valid` and `test` are lines of its training text; other parts are read as before.

    A hash of the words of the source line, as the model reads them, decides the part of a pair. So the parts depend on nothing but the
    lines, have no source line in common that the model would take for the same, and stay the same if lines are added or sorted. Each has
    about the share `data.held_out` of the text.
    """

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        self._whole, self._share, self.report = whole, config.held_out, whole.report
        self._taken = config.parts_held_out
        self._steps = config.preprocessing(None, config.source_language, pairs=bool(config.labels))
        if not self._taken:
            raise UserError(
                f"data.held_out is {config.held_out}, but neither data.valid={config.valid!r} nor data.tests={config.tests!r} is "
                "one of its parts, which are named valid and test; give these names, or leave data.held_out out"
            )

    def read(self, name: str) -> Pairs:
        if name not in (*self._taken, self.train):
            return self._whole.read(name)
        source, target = map(list, self.lines(name))
        if not source:
            raise UserError(
                f"data.held_out={self._share} leaves no line for the part {name!r} of {self.train}; give another share"
            )
        self.report.setdefault("held_out", self._describe())
        return source, target

    def lines(self, name: str) -> ManyPairs:
        if name not in (*self._taken, self.train):
            return self._whole.lines(name)
        return _Side(self, name, 0), _Side(self, name, 1)

    def files(self, name: str) -> list[Path]:
        return self._whole.files(self.train if name in self._taken else name)

    def part(self, line: str) -> str:
        """The part to which pairs with this source line belong."""
        return (*self._taken, self.train)[self._place(line)]

    def _place(self, line: str) -> int:
        read = (
            self._steps.words([line])[0] if self._config.tokenize else line.lower() if self._config.lowercase else line
        )
        digest = hashlib.blake2b(read.strip().encode(), digest_size=8).digest()
        return min(int(int.from_bytes(digest, "little") / 2**64 / self._share), len(self._taken))

    @cached_property
    def _places(self) -> bytes:
        """The part of each pair, by its number: told once, because to tokenise takes time."""
        return bytes(self._place(source) for source, _ in self.pairs())

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs of the training text. Raises: UserError if its sides have unequal numbers of lines."""
        for source, target in zip_longest(*self._lines):
            if source is None or target is None:
                self._whole.read(self.train)  # raises the error about the counts
            yield source, target

    def of_part(self, name: str) -> Iterator[tuple[str, str]]:
        """The pairs of one part."""
        wanted = (*self._taken, self.train).index(name)
        return (pair for pair, place in zip(self.pairs(), self._places, strict=True) if place == wanted)

    @cached_property
    def _lines(self) -> ManyPairs:
        # Asked for once, and read for each side of each part: a data set of TFDS is copied for it.
        return self._whole.lines(self.train)

    def _describe(self) -> str:
        parts = " and ".join(self._taken)
        return f"{self.train}: {100 * self._share:g} % of the lines each become {parts}, by a hash of the source line"


class _Side:
    """One side of a part, read anew by every iteration."""

    def __init__(self, source: HeldOut, name: str, side: int) -> None:
        self._source, self._name, self._side = source, name, side

    def __iter__(self) -> Iterator[str]:
        return (pair[self._side] for pair in self._source.of_part(self._name))
