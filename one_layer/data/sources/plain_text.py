"""Plain text of any length, in files or in a data set of TFDS, read in pieces; its parts for training, validation and test."""

from __future__ import annotations

import codecs
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from one_layer.data.config import HELD_OUT, DataConfig
from one_layer.data.text.lines import MissingPart, existing_file, how_to_convert
from one_layer.errors import UserError

if TYPE_CHECKING:
    from one_layer.data.sources.tfds_records import TfdsRecords

_PIECE = 1 << 20  # bytes read at once, and the most characters of a line
_LONGEST_CHARACTER = 4  # bytes of UTF-8
# The standard split of enwik8, in bytes (Mahoney's Large Text Compression Benchmark; Al-Rfou et al. 2019, arXiv 1808.04444).
ENWIK8 = {"train": (0, 90_000_000), "valid": (90_000_000, 95_000_000), "test": (95_000_000, 100_000_000)}
ENWIK8_BYTES = 100_000_000


@dataclass(frozen=True)
class TfdsText:
    """One field of a split of a data set of TFDS: the text of each record, and a line end after it."""

    name: str
    directory: str
    split: str
    field: str

    @cached_property
    def _records(self) -> TfdsRecords:
        from one_layer.data.sources.tfds_records import TfdsRecords  # here, because TFDS takes seconds to import

        return TfdsRecords(self.name, self.directory)

    @property
    def paths(self) -> list[Path]:
        """The files of the split. Raises: UserError if they are missing, or the data set has no such split."""
        return self._records.files(self.split)

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces. Raises: UserError for records that cannot be read, or without such a text."""
        texts, size = [], 0
        for number, (text,) in enumerate(self._records.stream(self.split, (self.field,)), 1):
            if not isinstance(text, str):
                raise UserError(
                    f"{self}, record {number:,}: the field {self.field!r} is no text; name one that is as data.columns"
                )
            texts.append(f"{text}\n".encode())
            size += len(texts[-1])
            if size >= _PIECE:
                yield b"".join(texts)
                texts, size = [], 0
        if texts:
            yield b"".join(texts)

    def __str__(self) -> str:
        return f"{self.name}, split {self.split}"


@dataclass(frozen=True)
class PlainText:
    """The bytes of `files`, one file after the other, from `first` up to `end` (None: all). Nothing is kept in memory."""

    files: tuple[Path | TfdsText, ...]
    first: int = 0
    end: int | None = None

    @property
    def paths(self) -> list[Path]:
        """The files on disk."""
        return [path for file in self.files for path in ([file] if isinstance(file, Path) else file.paths)]

    @cached_property
    def size(self) -> int:
        """Bytes of all files. A compressed file is read for it."""
        return sum(len(piece) for path in self.files for piece in _pieces(path))

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces. Raises: UserError for a file that cannot be read."""
        place = 0
        for path in self.files:
            for piece in _pieces(path):
                if self.end is not None and place >= self.end:
                    return
                begin, end = self.first - place, len(piece) if self.end is None else self.end - place
                place += len(piece)
                if begin < len(piece) and end > 0 and (wanted := piece[max(begin, 0) : end]):
                    yield wanted

    def characters(self) -> Iterator[str]:
        """The text in pieces. Raises: UserError for bytes that are not UTF-8."""
        decoder, place = codecs.getincrementaldecoder("utf-8")(), self.first
        try:
            for piece in self.pieces():
                yield decoder.decode(piece)
                place += len(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self}: byte {place + error.start:,} is not UTF-8; convert the text, {how_to_convert(error)}. "
                "Only task=causal_lm with data.unit=bytes reads text that is not UTF-8"
            ) from None

    def lines(self) -> Iterator[str]:
        """The lines with their line ends. A line of more than 2^20 characters is cut."""
        begun = ""
        for piece in self.characters():
            whole, end, rest = (begun + piece).rpartition("\n")
            if end:
                yield from re.findall(r"[^\n]*\n", whole + end)
            begun = rest
            if len(begun) > _PIECE:
                yield begun
                begun = ""
        if begun:
            yield begun

    def part(self, first: int, end: int, at_characters: bool) -> PlainText:
        """A part by position in bytes. `at_characters`: its ends move forward to where a character of UTF-8 begins."""
        ends = [self._character(place) if at_characters else place for place in (first, end)]
        return PlainText(self.files, *ends)

    def _character(self, place: int) -> int:
        after = b"".join(PlainText(self.files, place, place + _LONGEST_CHARACTER).pieces())
        return place + next((number for number, byte in enumerate(after) if byte & 0xC0 != 0x80), 0)

    def __str__(self) -> str:
        more = f" and {len(self.files) - 1} more files" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"


class PlainParts:
    """The parts of a corpus of plain text: files of their own, held-out ends of the training text, or enwik8's.

    With `data.held_out`, the last two such shares of the training text are `valid` and `test`, by position, as in enwik8. Their ends are
    at whole characters unless the unit is the byte. `lines`: the text is read in lines, which are whole characters whatever the unit.
    """

    def __init__(self, config: DataConfig, lines: bool = False) -> None:
        self._config, self._at_characters = config, lines or config.unit != "bytes"
        self.report: list[str] = []
        config.check_parts()
        self.train, self.valid, self.tests = _names(config)

    def part(self, name: str) -> PlainText:
        """The text of a part. Raises: UserError for missing, empty or unfit files."""
        config = self._config
        if config.source == "enwik8":
            whole = PlainText((_enwik8(Path(config.directory)),))
            if whole.size != ENWIK8_BYTES:
                raise UserError(
                    f"{whole} has {whole.size:,} bytes, but enwik8 has {ENWIK8_BYTES:,}; give the published file in data.directory, or "
                    "read another text with data.source=plain"
                )
            return whole.part(*ENWIK8[name], at_characters=self._at_characters)
        if not config.held_out or name not in (config.train, *HELD_OUT):
            return self._files(name)
        whole = self._files(config.train)
        share = int(whole.size * config.held_out)
        cuts = {"valid": (whole.size - 2 * share, whole.size - share), "test": (whole.size - share, whole.size)}
        return whole.part(*cuts.get(name, (0, whole.size - 2 * share)), at_characters=self._at_characters)

    def _files(self, name: str) -> PlainText:
        config, folder = self._config, Path(self._config.directory)
        if config.source == "tfds_text":
            return _not_empty(
                PlainText((TfdsText(config.tfds_name, config.directory, name, config.columns or "text"),))
            )
        found: list[Path] = []
        for each in map(str.strip, name.split(",")):
            if not each:
                raise UserError(
                    f"data.{self._key(name)}={name!r:.200} has an empty name; give names with one comma between them"
                )
            if any(letter in each for letter in "*?["):
                # Unlike Path.glob, this takes absolute patterns and `**.txt`.
                paths = {folder / path for path in glob(each, root_dir=folder, recursive=True, include_hidden=True)}
                matching = sorted(path for path in paths if path.is_file())
                if not matching:
                    raise UserError(f"no file in {folder} matches {each!r:.200}; correct data.{self._key(name)}")
                found += matching
            else:
                found.append(self._existing(name, folder / each))
        return _not_empty(PlainText(tuple(found)))

    def _existing(self, name: str, path: Path) -> Path:
        try:
            return existing_file(path)
        except UserError as error:
            if name == self._config.train:
                raise
            taken = "makes the last 10 % of the training text the parts valid and test"
            raise MissingPart.of(error, name, taken) from None

    def _key(self, name: str) -> str:
        config = self._config
        return "train" if name == config.train else "valid" if name == config.valid else "tests"


def _not_empty(text: PlainText) -> PlainText:
    if not next(text.pieces(), b""):
        raise UserError(f"{text} is empty; give a text with at least one byte")
    return text


def _names(config: DataConfig) -> tuple[str, str, tuple[str, ...]]:
    if config.held_out and not config.parts_held_out:
        raise UserError(
            f"data.held_out is {config.held_out}, but neither data.valid={config.valid!r} nor data.tests={config.tests!r} is one of its "
            "parts, which are named valid and test; give these names, or leave data.held_out out"
        )
    return config.train, config.valid, config.tests


def _enwik8(folder: Path) -> Path:
    zipped = folder / "enwik8.zip"
    return zipped if zipped.is_file() else existing_file(folder / "enwik8")


def _open(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".zip":
        archive = zipfile.ZipFile(path)
        files = [each for each in archive.infolist() if not each.is_dir()]
        if len(files) != 1:
            raise UserError(f"{path} holds {len(files) or 'no'} files; give an archive with one text in it")
        if files[0].flag_bits & 1:
            raise UserError(f"{path} is encrypted; give an archive without a password")
        return archive.open(files[0])
    return path.open("rb")


def _pieces(path: Path | TfdsText) -> Iterator[bytes]:
    if isinstance(path, TfdsText):
        yield from path.pieces()
        return
    try:
        with _open(path) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is not a whole compressed file ({error}); create it or copy it again") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
