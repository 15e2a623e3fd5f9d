"""Plain text of any length, in files, read in pieces."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from one_layer.data.text.lines import how_to_convert, opened
from one_layer.system.errors import UserError

_PIECE = 1 << 20  # bytes read at once, and the most characters of a line
_LONGEST_CHARACTER = 4  # bytes of UTF-8
_SHOWN = 4  # names of files


@dataclass(frozen=True)
class PlainText:
    """The bytes of `files`, one file after the other, from `first` up to `end` (None: all). Nothing is kept in memory.

    A file begins a new line: where the one before it lacks its last line end, there is one between the two. Byte order marks are left out.
    """

    files: tuple[Path, ...]
    first: int = 0
    end: int | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of all files, which are read for it."""
        return sum(map(len, self._joined()))

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces. Raises: UserError for a file that cannot be read."""
        place = 0
        for piece in self._joined():
            if self.end is not None and place >= self.end:
                return
            begin, end = self.first - place, len(piece) if self.end is None else self.end - place
            place += len(piece)
            if begin < len(piece) and end > 0 and (wanted := piece[max(begin, 0) : end]):
                yield wanted

    def _joined(self) -> Iterator[bytes]:
        last = b"\n"
        for file in self.files:
            for number, piece in enumerate(_pieces(file)):
                yield b"\n" + piece if number == 0 and last != b"\n" else piece
                last = piece[-1:]

    def characters(self) -> Iterator[str]:
        """The text in pieces. Raises: UserError for bytes that are not UTF-8."""
        decoder, read, place = codecs.getincrementaldecoder("utf-8")(), self.first, self.first
        try:
            for piece in chain(self.pieces(), [b""]):
                place = read - len(decoder.getstate()[0])  # a character may have begun in the piece before
                yield decoder.decode(piece, final=not piece)
                read += len(piece)
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
        return place + next((number for number, byte in enumerate(after) if byte & 0xC0 != 0x80), len(after))

    def __str__(self) -> str:
        shown, more = ", ".join(map(str, self.files[:_SHOWN])), len(self.files) - _SHOWN
        return f"{shown} and {more:,} more" if more > 0 else shown


def _pieces(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        piece = file.read(_PIECE + len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        while piece:
            yield piece
            piece = file.read(_PIECE)
