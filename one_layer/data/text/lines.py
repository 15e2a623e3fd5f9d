"""Reads lines of UTF-8 text from plain or gzip-compressed files, and tells what is no text by the first bytes of a file."""

import codecs
import difflib
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from one_layer.system.errors import UserError

_SHOWN = 4  # names of files, in the place of one that is missing
BLOCK = 512  # bytes that say what a file is
# What would pass for text byte by byte, and the bytes at its beginning that tell it.
_PACKED = {
    "gzip": rb"\x1f\x8b\x08",
    "zip": rb"PK\x03\x04",
    "bzip2": rb".{4}1AY&SY",
    "xz": rb"\xfd7zXZ\0",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "7-Zip": rb"7z\xbc\xaf\x27\x1c",
    # Then Thrift's mark of the number that begins its first page, or its footer; or the length, below 2^24, of what is encrypted.
    "Parquet": rb"PAR[1E](\x15|...\0)",
    "a tar archive": rb".{257}ustar\0",
    "a tar archive of GNU": rb".{257}ustar  \0",
}
_POINTER = b"version https://git-lfs.github.com/"
_WIDE = {"UTF-16LE": 1, "UTF-16BE": 0}  # where the zeros of Latin letters lie


def read_lines(path: str | Path) -> list[str]:
    """Returns the lines of the text file `path`, without line ends.

    Only "\\n" ends a line. Other line ends of Unicode (U+2028, U+0085, ...) are text, because parallel files could otherwise lose
    their alignment. A final "\\n" starts no further line. One "\\r" before a "\\n" or at the end of the file is removed, and so is
    a byte order mark at the beginning.

    A file whose name ends in ".gz" is decompressed. If `path` does not exist but `path`.gz does, `path`.gz is read.
    Raises: UserError for a missing or empty file, a damaged gzip file, one that holds no text, and bytes that are not UTF-8.
    """
    return list(stream_lines(path))


def split_lines(content: bytes, name: str) -> list[str]:
    """Splits UTF-8 text into lines as `read_lines` does.

    Raises: UserError for a byte that is not UTF-8, with the name `name` and the line number.
    """
    return [_decode(line, name, number) for number, line in enumerate(io.BytesIO(content), start=1)]


def read_parallel(source: str | Path, target: str | Path) -> tuple[list[str], list[str]]:
    """Returns the lines of two parallel files: line n of one is the translation of line n of the other.

    Raises: UserError if the files have different numbers of lines, and as `read_lines` does.
    """
    pairs = list(stream_parallel(source, target))
    return [line for line, _ in pairs], [line for _, line in pairs]


def stream_parallel(source: str | Path, target: str | Path) -> Iterator[tuple[str, str]]:
    """Yields the pairs of `read_parallel` one by one, for files that are too large for memory."""
    sides = stream_lines(source), stream_lines(target)
    for number, pair in enumerate(zip_longest(*sides)):
        if None in pair:
            counts = [
                number + (line is not None) + sum(1 for _ in side) for line, side in zip(pair, sides, strict=True)
            ]
            raise UserError(
                f"{existing_file(source)} has {counts[0]:,} lines, but {existing_file(target)} has {counts[1]:,}; "
                "give parallel files with the same number of lines"
            )
        yield pair


def stream_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of `read_lines` one by one. Raises: UserError as `read_lines` does, but only at the line concerned."""
    path = existing_file(path)
    number = 0
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            yield _decode(line, str(path), number)
    if number == 0:
        raise UserError(f"{path} is empty; give a text file with at least one line")


def check_text(begin: bytes, name: object) -> None:
    """`begin` are the first `BLOCK` bytes of the file `name`, unpacked. Raises: UserError, which says what it is, if it is no text."""
    for kind, mark in _PACKED.items():
        if re.match(mark, begin, re.DOTALL):
            raise UserError(f"{name} holds {kind}, which is not read; give the text itself")
    if begin.startswith(_POINTER):
        raise UserError(
            f"{name} is a pointer of Git LFS and not the text that it stands for; fetch that with git lfs pull"
        )
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return  # whoever decodes it says so
    for encoding, place in _WIDE.items():
        zeros = begin[place::2].count(0)
        if zeros > len(begin) // 4 and zeros > begin[1 - place :: 2].count(0):
            raise UserError(f"{name} is {encoding}; convert the file, for example with iconv -f {encoding} -t UTF-8")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The bytes of a text, unpacked where the name of the file ends in .gz.

    Raises: UserError for a file that is damaged, cannot be read, or holds no text.
    """
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            check_text(file.peek(BLOCK)[:BLOCK], path)
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is not a whole compressed file ({error}); create it or copy it again") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None


class MissingPart(UserError):
    """There is no file for a validation or test set. `missing` says this alone; the whole message also says how to train without it."""

    missing: UserError | None = None


def existing_part(path: str | Path, name: str, taken: str, validates: bool) -> Path:
    """`existing_file` for the validation or test set `name`; `taken` is what `data.held_out` would do, if it makes this part.

    Raises: MissingPart.
    """
    try:
        return existing_file(path)
    except UserError as missing:
        tests = "name the test sets as data.tests (() for none)"
        if taken:
            advice = f"Without a file for {name}, give data.held_out=0.02, which {taken}, or {tests}"
        else:
            advice = f"Or {'give data.valid=valid with data.held_out=0.02' if validates else tests}"
        error = MissingPart(f"{missing}. {advice}")
        error.missing = missing
        raise error from None


def existing_file(path: str | Path, key: str = "") -> Path:
    """Returns `path`, or `path`.gz if only that exists; a key of the config names it. Raises: UserError if neither is a file."""
    path = Path(path)
    if found := found_file(path):
        return found
    what = "is not a file" if os.path.exists(path) else "does not exist"
    named = f" as {key}" if key else ""
    raise UserError(
        f"{path} {what} (nor {path.name}.gz); give the name of a text file{named}, plain or .gz; {_beside(path)}"
    )


def found_file(path: Path) -> Path | None:
    """`path`, or `path`.gz if only that is a file; None if neither is, also for names that no file can have."""
    return next((each for each in (path, Path(f"{path}.gz")) if os.path.isfile(each)), None)


def _beside(path: Path) -> str:
    """What there is instead of a file that was asked for."""
    if path.parent.is_file():
        return f"{path.parent} is a file; give the folder that it lies in"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    names = sorted(each.name for each in path.parent.iterdir())
    near = difflib.get_close_matches(path.name, names, _SHOWN, cutoff=0.0)
    more = f" and {len(names) - len(near):,} more" if len(names) > len(near) else ""
    return f"the folder has {', '.join(near)}{more}" if near else "the folder is empty"


def _decode(line: bytes, name: str, number: int) -> str:
    try:
        text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name}, line {number}: the byte 0x{error.object[error.start]:02x} is not UTF-8; convert the file, {how_to_convert(error)}"
        ) from None
    return text.removeprefix("\ufeff") if number == 1 else text


def how_to_convert(error: UnicodeDecodeError) -> str:
    """A command that makes UTF-8 of such bytes, for people."""
    utf_16 = error.object[error.start : error.start + 2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return f"for example with iconv -f {'UTF-16' if utf_16 else 'WINDOWS-1252'} -t UTF-8"
