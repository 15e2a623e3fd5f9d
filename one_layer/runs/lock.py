"""Locks a folder, so that only one process works in it. Imports no JAX."""

import errno
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from one_layer.system.errors import UserError
from one_layer.system.files import remove_leftovers

log = logging.getLogger(__name__)

_LOCK = ".lock"


@contextmanager
def locked(folder: Path, doing: str) -> Iterator[None]:
    """Locks `folder` against other processes. The lock ends with the process, even after a kill.

    If the folder was created for the lock and is still empty, it is removed at the end. Raises: UserError, which names the process
    that already holds the lock and says what it is `doing`, for instance "trains in it".
    """
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    file = _lock_file(folder, doing)
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        remove_leftovers(folder)
        yield
    finally:
        with suppress(OSError):  # the folder may be gone, and whatever ended the work matters more
            if _is_lock(folder, file):
                (folder / _LOCK).unlink()
            if new and not any(folder.iterdir()):
                folder.rmdir()
        file.close()


def holder(folder: Path) -> str:
    """The process that works in `folder`, as it said when it locked it; empty if there is none.

    A lock file that nobody holds is left from a process that was killed, or was copied with its folder. On a file system without locks,
    there is no telling, and it counts as held.
    """
    with suppress(OSError), (folder / _LOCK).open(encoding="utf-8", errors="replace") as file:
        said = file.read().strip() or "another process"
        try:
            # Shared, so that two who look do not take each other for a holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return said
    return ""


def in_use(folder: Path) -> bool:
    """Whether a process has locked `folder`. This shares the lock for a moment, in which no process could begin to work there."""
    try:
        with (folder / _LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _lock_file(folder: Path, doing: str) -> TextIO:
    """The open lock file, locked. If another process has just unlocked and removed the file, it is created again."""
    while True:
        file = (folder / _LOCK).open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            if said := holder(folder):
                raise UserError(
                    f"{folder} is in use: {said} {doing}; wait for it, stop it, or give another folder"
                ) from None
            continue  # somebody has only looked, or has just ended
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                raise
            log.warning("%s: this file system has no locks; make sure that no other process %s", folder, doing)
            return file
        if _is_lock(folder, file):
            return file
        file.close()


def _is_lock(folder: Path, file: TextIO) -> bool:
    """Whether the open file is still the folder's lock file: somebody may have removed the folder and made it again."""
    path = folder / _LOCK
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
