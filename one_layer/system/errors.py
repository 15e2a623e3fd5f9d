"""The one exception that stands for a user's mistake, and what its messages are made with."""

import errno
import sys
from pathlib import Path


class UserError(ValueError):
    """Input that the user can mend: the message names the value, what is accepted and what to do.

    `main.py` prints the message alone and exits with code 2; in a library call it is an ordinary `ValueError`.
    """


def check_least(section: str, record: object, **least: int) -> None:
    """Raises: UserError for a key of a section of the config that is a number below its least value, or none at all (nan)."""
    for name, value in least.items():
        given = getattr(record, name)
        if given is not None and not given >= value:
            raise UserError(f"{section}.{name} is {given}; it must be at least {value}")


def counted(number: int, noun: str) -> str:
    """A number of things, for people: `1 column`, `2,000 columns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def of_a_file(error: OSError) -> UserError | None:
    """The mistake behind an error of the system about a file, or about a full disk; None for other errors: another path would not help."""
    if not (error.filename or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)):
        return None
    where = f"{error.filename}: " if error.filename else ""
    return UserError(f"{where}{error.strerror}; give a folder and files that can be read and written")


def not_in_utf8(path: str | Path) -> UserError:
    """The mistake of a path that is not UTF-8, or that this process's encoding of paths cannot say. Orbax takes UTF-8 alone."""
    if sys.getfilesystemencoding() == "utf-8":
        return UserError(f"the path {str(path)!r} is not in UTF-8; rename its folders")
    return UserError(
        f"the path {str(path)!r} has other letters than {sys.getfilesystemencoding()}, in which this Python reads and writes paths; start "
        "it in its UTF-8 mode, with python -X utf8 or PYTHONUTF8=1"
    )
