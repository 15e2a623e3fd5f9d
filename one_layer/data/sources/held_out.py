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

    A hash of the words of the source line, as the model reads them, decides the part of a pair. So the parts depend on nothing but the
    lines, have no source line in common that the model would take for the same, and stay the same if lines are added or sorted. Each has
    about the share `data.held_out` of the text.
    """

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        config.check_parts()
        self._whole, self._share, self.report = whole, config.held_out, whole.report
        self._taken = config.parts_held_out
        self._steps = config.preprocessing(None, config.source_language, pairs=bool(config.labels))

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
        wanted = (*self._taken, self.train).index(name)
        return (pair[side] for pair, place in zip(self.pairs(), self._places, strict=True) if place == wanted)

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

    @cached_property
    def _lines(self) -> ManyPairs:
        # Asked for once, and read for each side of each part: a data set of TFDS is copied for it.
        return self._whole.lines(self.train)

    def _describe(self) -> str:
        parts = " and ".join(self._taken)
        return f"{self.train}: {100 * self._share:g} % of the lines each become {parts}, by a hash of the source line"
