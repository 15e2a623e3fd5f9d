"""Sources made of others: parts that are held out of a training text, several corpora as one, and translations of a teacher."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

from one_layer.data.columns import shares_of
from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import Again, ManyPairs, Pairs, Source
from one_layer.data.text.lines import MissingPart, existing_file, stream_lines
from one_layer.system.errors import UserError


class HeldOut(Source):
    """A source whose parts `valid` and `test` are lines of its training text; other parts are read as before.

    A hash of the source line decides the part of a pair: of its tokens (`data.tokenize`), in lower case where the model reads it so. So the
    parts depend on nothing but the lines, have no such line in common, and stay the same if lines are added or sorted. Each has about the
    share `data.held_out` of the text.
    """

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        config.check_parts()
        self._whole, self._share, self.report = whole, config.held_out, whole.report
        self._taken = config.parts_held_out
        self._steps = config.preprocessing(None, config.source_language, pairs=bool(config.labels))

    @cached_property
    def _lines(self) -> ManyPairs:
        # Asked for once, and read for each side of each part: a data set of TFDS is copied for it.
        return self._whole.lines(self.train)

    @cached_property
    def _places(self) -> bytes:
        """The part of each pair, told once, because to tokenise takes time. Raises: UserError for sides of unequal length."""
        source, target = self._lines
        places = bytes(map(self._place, source))
        if sum(1 for _ in target) != len(places):
            self._whole.read(self.train)  # raises the error about the counts
        return places

    def _place(self, line: str) -> int:
        read = (
            self._steps.words([line])[0] if self._config.tokenize else line.lower() if self._config.lowercase else line
        )
        digest = hashlib.blake2b(read.strip().encode(), digest_size=8).digest()
        return min(int(int.from_bytes(digest, "little") / 2**64 / self._share), len(self._taken))

    def _part(self, lines: Iterable[str], part: int) -> Iterator[str]:
        return (line for place, line in zip(self._places, lines, strict=True) if place == part)

    def read(self, name: str) -> Pairs:
        if name not in (*self._taken, self.train):
            return self._whole.read(name)
        source, target = super().read(name)
        if not source:
            raise UserError(
                f"data.held_out={self._share} leaves no line for the part {name!r} of {self.train}; give another share"
            )
        return source, target

    def lines(self, name: str) -> ManyPairs:
        if name not in (*self._taken, self.train):
            return self._whole.lines(name)
        share = f"{100 * self._share:g} % of the lines each become {' and '.join(self._taken)}"
        self.report[f"held_out {self.train}"] = f"{self.train}: {share}, by a hash of the source line"
        part = (*self._taken, self.train).index(name)
        source, target = (Again(partial(self._part, side, part)) for side in self._lines)
        return source, target

    def files(self, name: str) -> list[Path]:
        return self._whole.files(self.train if name in self._taken else name)


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
        counts, targets = ([sum(1 for _ in part[side]) for part in parts] for side in range(2))
        for each, count, other in zip(self._corpora, counts, targets, strict=True):
            if count != other:  # the totals may agree all the same
                each.read(each.train)  # raises the error about the counts
        wanted = repeated(counts, self._shares) if self._shares else counts
        shown = (
            f"{each.train} {count:,} of {counted:,} pairs"
            for each, count, counted in zip(self._corpora, wanted, counts, strict=True)
        )
        self.report[name] = f"several corpora: {', '.join(shown)}"
        source, target = (Again(partial(_mixed, [part[side] for part in parts], counts, wanted)) for side in range(2))
        return source, target

    def files(self, name: str) -> list[Path]:
        everywhere = name in (self.train, *self._config.parts_held_out)
        corpora = self._corpora if everywhere else [self._having(name)]
        return [file for each in corpora for file in each.files(each.train if name == self.train else name)]

    def _having(self, name: str) -> Source:
        """The first corpus that can read files of this name: a table, rather one with the same ending, or a pair of files.

        Raises: UserError as the first one does.
        """
        for each in sorted(self._corpora, key=lambda each: _ending(each.train) != _ending(name)):
            with suppress(MissingPart):
                each.files(name)
                return each
        return self._corpora[0]


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


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


def _mixed(parts: Sequence[Iterable[str]], counts: Sequence[int], wanted: Sequence[int]) -> Iterator[str]:
    """One side of several corpora, of which each gives as many lines as are wanted."""
    for lines, count, want in zip(parts, counts, wanted, strict=True):
        passes, rest = divmod(want, max(count, 1))
        for _ in range(passes):
            yield from lines
        if rest:
            yield from (line for place, line in enumerate(lines) if (place + 1) * rest // count > place * rest // count)


class Taught(Source):
    """A source whose training text has `data.translations` as its target side, or beside its own (Kim and Rush 2016, section 3.2).

    All other parts are read as before.
    """

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        self._whole, self.report = whole, whole.report
        self._translations = Path(config.translations)

    def read(self, name: str) -> Pairs:
        if name != self.train:
            return self._whole.read(name)
        source, target = super().read(name)
        if len(source) != len(target):
            raise UserError(
                f"data.translations={self._translations} does not have a line for each of the training text's; give translations of "
                f"{self._config.describe('train')}"
            )
        return source, target

    def lines(self, name: str) -> ManyPairs:
        source, target = self._whole.lines(name)
        if name != self.train:
            return source, target
        taught = Again(partial(stream_lines, self._translations))
        if self._config.teacher_mix != "both":
            return source, taught
        return Again(partial(chain, source, source)), Again(partial(chain, target, taught))

    def files(self, name: str) -> list[Path]:
        return [*self._whole.files(name), *([existing_file(self._translations)] if name == self.train else [])]
