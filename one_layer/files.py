"""Writing files so that a reader sees the old content or the new, never a half."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Writes `data` (text as UTF-8) as `replacing` does."""
    with replacing(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write, under a temporary name beside `path`, which takes the place of `path` once everything is on the disk.

    Missing folders are made. The file behind a link is replaced, not the link, and it keeps its permissions. What is no file (a
    device, a pipe) cannot be replaced: it is opened and written.
    """
    target = _replaceable(path)
    if target is None:
        with open(path, "wb") as file:
            yield file
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name:.100}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _replaceable(path: str | Path) -> Path | None:
    """The regular or missing file that `path` leads to through its links; None where it leads to anything else."""
    target = Path(os.path.realpath(path))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return target
    # An open file that has lost its name is reached through /dev/fd, and by no path of its own.
    named = target.exists() and os.path.samestat(found, target.stat())
    return target if stat.S_ISREG(found.st_mode) and named else None


def _sync_folder(folder: Path) -> None:
    """Puts a new name on the disk: without it a crash may bring the old file back."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """mkstemp makes files that their owner alone may read; give them the permissions of an ordinary new file."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
