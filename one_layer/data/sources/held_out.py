"""Takes validation and test sets out of a training text that comes in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path

from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import Again, ManyPairs, Pairs, Source
from one_layer.system.errors import UserError


class HeldOut(Source):
    """A source whose parts `valid` and `test` are lines of its training text; other parts are read as before.

    A hash of the source line, in lower case where the model reads it so, decides the part of a pair. So the parts depend on nothing but
    the lines, have no source line in common, and stay the same if lines are added or sorted. Each has about the share `data.held_out` of
    the text.
    """

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        config.check_parts()
        self._whole, self._share, self.report = whole, config.held_out, whole.report
        self._taken = config.parts_held_out

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
        source, target = (Again(partial(self._side, name, side)) for side in range(2))
        return source, target

    def _side(self, name: str, side: int) -> Iterator[str]:
        return (pair[side] for pair in self.pairs() if self.part(pair[0]) == name)

    def files(self, name: str) -> list[Path]:
        return self._whole.files(self.train if name in self._taken else name)

    def part(self, line: str) -> str:
        """The part to which pairs with this source line belong."""
        read = line.lower() if self._config.lowercase else line
        digest = hashlib.blake2b(read.strip().encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "little") / 2**64 / self._share
        return self._taken[int(place)] if place < len(self._taken) else self.train

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs of the training text. Raises: UserError if its sides have unequal numbers of lines."""
        for source, target in zip_longest(*self._lines):
            if source is None or target is None:
                self._whole.read(self.train)  # raises the error about the counts
            yield source, target

    @cached_property
    def _lines(self) -> ManyPairs:
        # Asked for once, and read for each side of each part: a data set of TFDS is copied for it.
        return self._whole.lines(self.train)

    def _describe(self) -> str:
        parts = " and ".join(self._taken)
        return f"{self.train}: {100 * self._share:g} % of the lines each become {parts}, by a hash of the source line"
