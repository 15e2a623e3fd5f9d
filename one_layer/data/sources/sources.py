"""Where a corpus's lines come from: the toy language, parallel files, a data set of TFDS, a data-bin folder of fairseq, or
labelled texts.

Each is made of parts whose names are its `train`, `valid` and `tests`. `read` gives a part's lines, source and target, and raises
UserError where there are none; `lines` is for the greatest part, which may be read as it is needed, and more than once; `files`
names the files that all this comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from one_layer.data.config import DataConfig
from one_layer.data.preparation.parallel import chunks
from one_layer.data.preparation.spill import Spill
from one_layer.data.sources.data_bin import DataBin
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.sources.toy import grammar as toy
from one_layer.data.text.lines import existing_file, read_parallel, stream_lines
from one_layer.data.text.vocabulary import SPECIALS, UNK
from one_layer.data.tokens import TokenStore
from one_layer.errors import UserError
from one_layer.tasks.classification.glue import read_examples, read_tfds_examples, task_named

_RECORDS = 4096  # of TFDS, read at once


class Lines:
    """A file's lines, one at a time, read anew by every iteration."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        return stream_lines(self._path)


Pairs = tuple[list[str], list[str]]
ManyPairs = tuple[Iterable[str], Iterable[str]]  # that can be read more than once


class Toy:
    """The embedded language."""

    train, valid, tests = "train", "valid", ("test",)

    def __init__(self, config: DataConfig) -> None:
        self._config = config

    def read(self, name: str) -> Pairs:
        german, english = self._parts[name]
        return (german, english) if self._config.source_language == "de" else (english, german)

    def lines(self, name: str) -> ManyPairs:
        return self.read(name)

    def files(self, name: str) -> list[Path]:
        return []

    @cached_property
    def _parts(self) -> dict[str, Pairs]:
        config = self._config
        return toy.generate(config.seed, train=config.toy_train, valid=config.toy_valid, test=config.toy_test)


class TextFiles:
    """Parallel files, `{directory}/{name}.{language}`."""

    def __init__(self, config: DataConfig) -> None:
        self.train, self.valid, self.tests = config.train, config.valid, config.tests
        self._config = config

    def read(self, name: str) -> Pairs:
        source, target = self._paths(name)
        return read_parallel(source, target)

    def lines(self, name: str) -> ManyPairs:
        source, target = map(Lines, self._paths(name))
        return source, target

    def files(self, name: str) -> list[Path]:
        return [existing_file(path) for path in self._paths(name)]

    def _paths(self, name: str) -> list[Path]:
        return [Path(self._config.directory) / f"{name}.{language}" for language in self._config.languages]


class TfdsSplits:
    """Splits of a data set of TFDS that has a text field for each language."""

    def __init__(self, config: DataConfig) -> None:
        self.train, self.valid, self.tests = config.train, config.valid, config.tests
        self._records, self._languages = TfdsRecords(config.tfds_name, config.directory), config.languages

    def read(self, name: str) -> Pairs:
        source, target = map(list, self.lines(name))
        return source, target

    def lines(self, name: str) -> ManyPairs:
        sides = Spill(), Spill()
        for records in chunks(self._records.stream(name, self._languages), _RECORDS):
            for side, texts in zip(sides, zip(*records, strict=True), strict=True):
                # A line of text is one line in every file that comes of it, hypotheses among them.
                side.write(text.replace("\n", " ") for text in texts)
        return sides

    def files(self, name: str) -> list[Path]:
        return self._records.files(name)


class LabelledTexts:
    """Files, or splits of TFDS, of labelled texts: a line of one text, or two with a tab between; its target is the label's name."""

    def __init__(self, config: DataConfig) -> None:
        self.train, self.valid, self.tests = config.train, config.valid, config.tests
        self._config, self._task = config, task_named(config.labels)
        self.report: dict[str, str] = {}  # of what was read

    def read(self, name: str) -> Pairs:
        config = self._config
        if config.source == "tfds":
            found = read_tfds_examples(self._task, config.tfds_name, name, config.directory)
        else:
            found = read_examples(self._task, self.files(name)[0])
        if not len(found):
            raise UserError(f"{name} has no labelled text; {found.describe()}")
        self.report[name] = f"{name}: {found.describe()}"
        texts = [
            "\t".join(map(_one_line, (each.first, each.second)[: len(self._task.columns)])) for each in found.examples
        ]
        return texts, [self._task.labels[each.label] for each in found.examples]

    def lines(self, name: str) -> ManyPairs:
        return self.read(name)

    def files(self, name: str) -> list[Path]:
        if self._config.source == "tfds":
            return TfdsRecords(self._config.tfds_name, self._config.directory).files(name)
        return [existing_file(Path(self._config.directory) / name)]


class FairseqFolder:
    """A data-bin folder: ids, and lines made from them."""

    def __init__(self, config: DataConfig) -> None:
        self.train, self.valid, self.tests = config.train, config.valid, config.tests
        self._bin = DataBin(config.directory, config.languages)
        self.vocabularies = self._bin.vocabularies

    def ids(self, name: str) -> tuple[TokenStore, TokenStore]:
        """A part's sentences, source and target."""
        return self._bin.read(name)

    def read(self, name: str) -> Pairs:
        source, target = (
            [_unknown_marked(vocabulary.decode(ids)) for ids in side]
            for vocabulary, side in zip(self.vocabularies, self.ids(name), strict=True)
        )
        return source, target

    def lines(self, name: str) -> ManyPairs:
        return self.read(name)

    def files(self, name: str) -> list[Path]:
        return []


def _unknown_marked(line: str) -> str:
    """What the dictionary lacked, as fairseq writes it in references: a hypothesis's own <unk> must not count as right."""
    return " ".join(f"<{SPECIALS[UNK]}>" if token == SPECIALS[UNK] else token for token in line.split(" "))


def _one_line(text: str) -> str:
    return " ".join(text.replace("\t", " ").split("\n"))


Source = Toy | TextFiles | TfdsSplits | LabelledTexts | FairseqFolder


def open_source(config: DataConfig) -> Source:
    """The source that `config` names."""
    kinds: dict[str, type[Source]] = {"toy": Toy, "text": TextFiles, "tfds": TfdsSplits, "fairseq": FairseqFolder}
    if config.labels:
        return LabelledTexts(config)
    return kinds[config.source](config)
