"""Lines from a file or stdin, and lines to a file or stdout."""

from __future__ import annotations

import os
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
    """Writes lines to `path`, or, where it is empty, to stdout, in UTF-8 whatever the terminal's encoding.

    A file is replaced once all lines are on the disk; devices and pipes are written to. Raises: UserError, which names `path`, for
    one that cannot be written, and for a folder that does not exist.
    """
    text = "".join(line + "\n" for line in lines)
    if not path:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not (os.path.isdir(folder) or os.path.exists(path)):
        raise UserError(f"--output={path}: there is no folder {folder}; make it, or give another file")
    try:
        write_atomically(path, text)
    except BrokenPipeError:  # the reader of a pipe has gone; main.py knows what that means
        raise
    except OSError as error:
        raise UserError(
            f"--output={path} cannot be written: {error.strerror}; give a file in a folder that can be written"
        ) from None
