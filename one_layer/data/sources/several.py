"""Several corpora as one training text, with shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from one_layer.data.columns import shares_of
from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source
from one_layer.data.text.lines import MissingPart
from one_layer.system.errors import UserError


class Several(Source):
    """Sources whose training texts follow each other; one vocabulary is made of all. `corpora` are those of `config.corpora()`, in order.

    Where `data.mix` gives shares, the pairs of a corpus that is smaller than its share come more than once: first whole, as often as that
    fits, then as many as are missing, evenly spaced. So each pair is there at least once, and no pair of a corpus more than once oftener
    than another one of it.

    The parts that `data.held_out` takes are those of all corpora together; other parts are read as the first corpus that has such files.
    """

    def __init__(self, corpora: Sequence[Source], config: DataConfig) -> None:
        super().__init__(config)
        self._corpora = corpora
        self._shares = shares_of(config.mix, [each.train for each in corpora])
        for each in corpora:
            each.report = self.report

    def read(self, name: str) -> Pairs:
        held_out = name in self._config.parts_held_out
        if not held_out and name != self.train:
            return self._having(name).read(name)
        parts = [each.lines(name) if held_out else each.read(each.train) for each in self._corpora]
        source, target = ([line for part in parts for line in part[side]] for side in range(2))
        if not source:  # a part of one corpus may be empty, but not that of all
            return self._corpora[0].read(name)  # which raises
        return source, target

    def lines(self, name: str) -> ManyPairs:
        if name != self.train:
            return self.read(name)
        parts = [each.lines(each.train) for each in self._corpora]
        counts = [sum(1 for _ in source) for source, _ in parts]
        wanted = repeated(counts, self._shares or counts)
        shown = (
            f"{each.train} {count:,} of {counted:,} pairs"
            for each, count, counted in zip(self._corpora, wanted, counts, strict=True)
        )
        self.report[name] = f"several corpora: {', '.join(shown)}"
        source, target = (_Mixed([part[side] for part in parts], counts, wanted) for side in range(2))
        return source, target

    def files(self, name: str) -> list[Path]:
        everywhere = name in (self.train, *self._config.parts_held_out)
        corpora = self._corpora if everywhere else [self._having(name)]
        return [file for each in corpora for file in each.files(self._part(each, name))]

    def _having(self, name: str) -> Source:
        """The first corpus that can read files of this name: a table, or a pair of files. Raises: UserError as the first one does."""
        for each in self._corpora:
            with suppress(MissingPart):
                each.files(name)
                return each
        return self._corpora[0]

    def _part(self, corpus: Source, name: str) -> str:
        return corpus.train if name == self.train else name


def repeated(counts: Sequence[int], shares: Sequence[float]) -> list[int]:
    """How many pairs each corpus gives, so that all have their shares and none fewer pairs than it has.

    `counts`: the pairs of each corpus. Raises: UserError if a share would repeat the pairs of a corpus more than a thousand times.
    """
    whole = max(count / share for count, share in zip(counts, shares, strict=True))
    wanted = [round(whole * share) for share in shares]
    if any(want > 1000 * count for want, count in zip(wanted, counts, strict=True)):
        raise UserError(
            f"data.mix asks for {', '.join(f'{want:,}' for want in wanted)} pairs of corpora that have "
            f"{', '.join(f'{count:,}' for count in counts)}; give shares that repeat no corpus more than a thousand times"
        )
    return wanted


class _Mixed:
    """One side of several corpora, read anew by every iteration."""

    def __init__(self, parts: Sequence[Iterable[str]], counts: Sequence[int], wanted: Sequence[int]) -> None:
        self._parts = list(zip(parts, counts, wanted, strict=True))

    def __iter__(self) -> Iterator[str]:
        for lines, count, wanted in self._parts:
            passes, rest = divmod(wanted, max(count, 1))
            for _ in range(passes):
                yield from lines
            if rest:
                spaced = (
                    line for place, line in enumerate(lines) if (place + 1) * rest // count > place * rest // count
                )
                yield from spaced
