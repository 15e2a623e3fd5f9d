"""Where pairs of lines come from: the toy language, parallel files, a data set of TFDS, or a data-bin folder of fairseq."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path

from one_layer.data.columns import column_names
from one_layer.data.config import HELD_OUT, DataConfig
from one_layer.data.preparation.parallel import chunks
from one_layer.data.preparation.spill import Spill
from one_layer.data.sources.data_bin import DataBin
from one_layer.data.sources.table import Table
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.sources.toy import grammar as toy
from one_layer.data.special_tokens import EOS
from one_layer.data.text.lines import existing_file, existing_part, read_parallel, stream_lines
from one_layer.data.text.vocabulary import unknown_marked
from one_layer.data.tokens import TokenStore
from one_layer.system.errors import UserError

_RECORDS = 4096  # of TFDS, read at once


class Again:
    """Lines that every iteration reads anew, as `read` yields them."""

    def __init__(self, read: Callable[[], Iterable[str]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())


Pairs = tuple[list[str], list[str]]
ManyPairs = tuple[Iterable[str], Iterable[str]]  # that can be read more than once


class Source(ABC):
    """Where lines come from, part by part: `train`, `valid` and `tests` are the names of the parts.

    `report` has a line for people on each part that was read, where there is something to say.
    """

    def __init__(self, config: DataConfig) -> None:
        self.train, self.valid, self.tests = config.train, config.valid, config.tests
        self.report: dict[str, str] = {}
        self._config = config

    def read(self, name: str) -> Pairs:
        """The lines of a part, source and target. Raises: UserError where there are none."""
        source, target = map(list, self.lines(name))
        return source, target

    @abstractmethod
    def lines(self, name: str) -> ManyPairs:
        """The same for the largest part: lines are read as they are needed, and can be read more than once."""

    def ids(self, name: str) -> tuple[TokenStore, TokenStore] | None:
        """The sentences of a part as ids, source and target, of a source that has ids; None of one that has text."""
        return None

    def files(self, name: str) -> list[Path]:
        """The files that a part comes from. Raises: UserError for one that is missing."""
        return [self._existing(name, path) for path in self._paths(name)]

    def _paths(self, name: str) -> list[Path]:
        """Where the files of a part should be."""
        return []

    def _existing(self, name: str, path: Path) -> Path:
        """The file `path` of a part, plain or .gz. Raises: UserError if there is none; it says what to do without such a part."""
        if name == self.train:
            return existing_file(path, "data.train" * (path.name == name))  # else the name is a part of the file's
        taken = "takes the parts valid and test out of the training text" * (name in HELD_OUT)
        return existing_part(path, name, taken, validates=name == self.valid)


class Toy(Source):
    """The embedded language. Its parts are `train`, `valid` and, unless no test set is asked for, `test`."""

    def lines(self, name: str) -> Pairs:
        german, english = self._parts[name]
        return (german, english) if self._config.source_language == "de" else (english, german)

    @cached_property
    def _parts(self) -> dict[str, Pairs]:
        config = self._config
        return toy.generate(config.seed, train=config.toy_train, valid=config.toy_valid, test=config.toy_test)


class TextFiles(Source):
    """Parallel files, `{directory}/{name}.{language}`."""

    def read(self, name: str) -> Pairs:
        return read_parallel(*self.files(name))

    def lines(self, name: str) -> ManyPairs:
        source, target = (Again(partial(stream_lines, path)) for path in self._paths(name))
        return source, target

    def _paths(self, name: str) -> list[Path]:
        return [Path(self._config.directory) / f"{name}.{language}" for language in self._config.languages]


class TfdsSplits(Source):
    """Splits of a data set of TFDS that has a text field for each language."""

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self._records, self._languages = TfdsRecords(config.tfds_name, config.directory), config.languages

    def lines(self, name: str) -> ManyPairs:
        sides = Spill(), Spill()
        for records in chunks(self._records.stream(name, self._languages), _RECORDS):
            for side, language, texts in zip(sides, self._languages, zip(*records, strict=True), strict=True):
                if not all(isinstance(text, str) for text in texts):
                    raise UserError(
                        f"{self._config.tfds_name}, split {name}: the field {language!r} is no text; data.source_language and "
                        "data.target_language name the fields of the two sides, and data.labels makes the second one labels"
                    )
                side.write(map(one_line, texts))
        return sides

    def files(self, name: str) -> list[Path]:
        return self._records.files(name)


class TableFiles(Source):
    """Tables with a column for each language, `{directory}/{name}`."""

    def read(self, name: str) -> Pairs:
        self.files(name)
        if not (pairs := super().read(name))[0]:
            raise UserError(f"{self._paths(name)[0]} has no pairs; give a file with at least one")
        return pairs

    def lines(self, name: str) -> ManyPairs:
        table = Table(self._paths(name)[0], column_names(self._config.columns), self._config.delimiter)

        def column(place: int) -> Iterator[str]:
            return (one_line(row[place]) for _, row in table)

        return Again(partial(column, 0)), Again(partial(column, 1))

    def _paths(self, name: str) -> list[Path]:
        return [Path(self._config.directory) / name]


def one_line(text: str) -> str:
    """A text without line ends: a line of text is one line in every file that comes of it, hypotheses among them."""
    return text.replace("\n", " ")


class FairseqFolder(Source):
    """A data-bin folder: ids, and lines made from them."""

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self._bin = DataBin(config.directory, config.languages)
        self.vocabularies = self._bin.vocabularies

    def ids(self, name: str) -> tuple[TokenStore, TokenStore]:
        """A part's sentences."""
        if name == self.train:
            self._bin.check_whole(name)
        return self._bin.read(name)

    def lines(self, name: str) -> Pairs:
        source, target = (
            # As in fairseq, a text shows no end of a sentence.
            [unknown_marked(vocabulary.decode(ids[ids != EOS])) for ids in side]
            for vocabulary, side in zip(self.vocabularies, self.ids(name), strict=True)
        )
        return source, target


_KINDS: dict[str, type[Source]] = {
    "toy": Toy,
    "text": TextFiles,
    "tsv": TableFiles,
    "tfds": TfdsSplits,
    "fairseq": FairseqFolder,
}


def open_source(config: DataConfig) -> Source:
    """The source of pairs that `config.source` names. Raises: UserError for names of parts that it cannot have."""
    config.check_parts()
    return _KINDS[config.source](config)
