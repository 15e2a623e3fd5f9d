"""Lines of text in a file without a name: more than memory holds, and nothing left behind, however the process ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator

from one_layer.errors import UserError

_BLOCK = 1 << 20  # bytes


class Spill:
    """Lines that are written once and read as often as needed, each time from the first.

    They lie where the system keeps temporary files (TMPDIR says where). Raises: UserError where there is no place or no room.
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        except OSError as error:
            raise UserError(
                f"there is no folder for temporary files ({error.strerror or error}); let the variable TMPDIR name one that can be "
                "written to"
            ) from None
        self._lines = 0

    def write(self, lines: Iterable[str]) -> None:
        """Adds lines, none of which holds a line end."""
        texts = [line + "\n" for line in lines]
        content = memoryview("".join(texts).encode())
        try:
            while content:  # what a disk has no room for is at first written in part
                content = content[self._file.write(content) :]
        except OSError as error:
            raise UserError(
                f"the folder for temporary files, {tempfile.gettempdir()}, cannot be written to ({error.strerror}); make room "
                "there, or let the variable TMPDIR name another"
            ) from None
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
