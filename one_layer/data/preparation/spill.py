"""Stores lines of text in an unnamed temporary file: more than fits in memory, and gone however the process ends."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from one_layer.system.errors import UserError

_BLOCK = 1 << 20  # bytes


def temporary_file() -> IO[bytes]:
    """An unnamed file in the system's folder for temporary files (see TMPDIR). Raises: UserError if there is no such folder."""
    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError as error:
        raise UserError(
            f"there is no folder for temporary files ({error.strerror or error}); set the variable TMPDIR to a writable folder"
        ) from None


def write_whole(file: IO[bytes], content: bytes) -> None:
    """Writes all of `content` to a file of `temporary_file`. Raises: UserError if there is no space."""
    rest = memoryview(content)
    try:
        while rest:  # a disk that is almost full may first accept only a part
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise UserError(
            f"the folder for temporary files, {tempfile.gettempdir()}, cannot be written to ({error.strerror}); free some space "
            "there, or set the variable TMPDIR to another folder"
        ) from None


class Spill:
    """Lines that are written once and can be read several times, each time from the first line. Raises: UserError as these functions."""

    def __init__(self) -> None:
        self._file = temporary_file()
        self._lines = 0

    def write(self, lines: Iterable[str]) -> None:
        """Adds lines. No line may contain a line end."""
        texts = [line + "\n" for line in lines]
        write_whole(self._file, "".join(texts).encode())
        self._lines += len(texts)

    def __len__(self) -> int:
        return self._lines

    def __iter__(self) -> Iterator[str]:
        place, begun = 0, b""
        while block := os.pread(self._file.fileno(), _BLOCK, place):
            place += len(block)
            whole, end, begun = (begun + block).rpartition(b"\n")
            if end:
                yield from whole.decode().split("\n")
