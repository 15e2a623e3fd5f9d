"""Lines from a file or stdin, and lines to a file or stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from one_layer.data.text.lines import read_lines, split_lines
from one_layer.errors import UserError
from one_layer.files import write_atomically


def read_input(path: str) -> list[str]:
    """The lines of `path`, or, where it is empty, of stdin. Raises: UserError for an input that cannot be used."""
    if path:
        return read_lines(path)
    lines = split_lines(sys.stdin.buffer.read(), "stdin")
    if not lines:
        raise UserError("stdin is empty; pipe lines into it, or give --input=FILE")
    return lines


def write_output(path: str, lines: Iterable[str]) -> None:
    """Writes lines to `path`, or, where it is empty, to stdout, in UTF-8 whatever the terminal's encoding."""
    text = "".join(line + "\n" for line in lines)
    if path:
        write_atomically(path, text)
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
