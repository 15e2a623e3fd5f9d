"""Reads lines from a file or stdin, and writes lines to a file or stdout."""

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from one_layer.data.text.lines import BLOCK, check_text, read_lines, split_lines
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically


def read_input(path: str) -> list[str]:
    """The lines of `path`, or of stdin if `path` is empty. Raises: UserError for an input that cannot be used."""
    given = Path(path)
    if path and not (given.is_fifo() or given.is_char_device()):
        return read_lines(path)
    if not path and sys.stdin is None:
        raise UserError("stdin is closed; pipe lines into it, or give --input=FILE")
    content, name = (given.read_bytes(), path) if path else (sys.stdin.buffer.read(), "stdin")
    check_text(content[:BLOCK], name)
    if not (lines := split_lines(content, name)):
        raise UserError(
            f"{name} is empty; {'give lines to read' if path else 'pipe lines into it, or give --input=FILE'}"
        )
    return lines


def check_output(path: str) -> None:
    """Raises: UserError if nothing can surely be written to `path`, or to stdout if it is empty."""
    if not path:
        if sys.stdout is None:
            raise UserError("stdout is closed; leave it open, or give --output=FILE")
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not (os.path.isdir(folder) or os.path.exists(path)):
        raise UserError(f"--output={path}: there is no folder {folder}; make it, or give another file")
    if os.path.isdir(path):
        raise UserError(f"--output={path} is a folder; give a file")
    replaced = os.path.isfile(path) or not os.path.exists(path)  # by a new file in the folder
    if not os.access(folder if replaced else path, os.W_OK):
        raise _unwritable(path, os.strerror(errno.EACCES))


def write_output(path: str, lines: Iterable[str]) -> None:
    """Writes lines to `path`, or to stdout if `path` is empty, in UTF-8 whatever the terminal's encoding. Raises: as `write_content`."""
    write_content(path, "".join(line + "\n" for line in lines).encode())


def write_content(path: str, content: bytes) -> None:
    """Writes bytes to `path`, or to stdout if `path` is empty.

    A file is replaced when all bytes are on the disk; devices and pipes are written directly. Raises: UserError, which names `path`, if
    it cannot be written or its folder does not exist.
    """
    check_output(path)
    if not path:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        write_atomically(path, content)
    except BrokenPipeError:  # the reader of the pipe has closed it; main.py handles that
        raise
    except OSError as error:
        raise _unwritable(path, error.strerror) from None


def _unwritable(path: str, reason: str | None) -> UserError:
    return UserError(f"--output={path} cannot be written: {reason}; give a file in a folder that can be written")
