"""Atomic writing of files: a reader sees the old content or the new content, never a part of it. And reading JSON that may be damaged."""

import errno
import fcntl
import json
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from one_layer.system.errors import UserError

log = logging.getLogger(__name__)

UNFINISHED = ".unfinished"  # the end of the names of temporary files and folders, which `remove_leftovers` knows
_HOME = re.compile(r"~[^/=\s]*/")
_TRIES = 100  # of making a temporary file that stays
_TEMPORARY = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(UNFINISHED)}")


def at_home(word: str) -> str:
    """A path, or a word of a command line with a path behind `=`, with the home folder in the place of `~/` or `~name/` at its start.

    A shell does this too, but not behind `=`, where such a path would become a folder called `~`. Raises: UserError for an unknown name.
    """
    option, path = re.fullmatch(r"(-[^=]*=)?(.*)", word, re.DOTALL).groups("")  # type: ignore[union-attr]
    if not _HOME.match(path):
        return word
    home = os.path.expanduser(path)
    if home == path:
        raise UserError(f"{word}: there is no home folder {path.partition('/')[0]}; give the folder's whole path")
    return option + home


def json_object(path: str | Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises: OSError for a file that cannot be read; ValueError for anything else than an object, however it is damaged.
    """
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Writes `data` with `replacing`; text is encoded as UTF-8."""
    with replacing(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


def write_json(path: str | Path, values: dict[str, Any]) -> None:
    """Writes an object as indented JSON, as `write_atomically` does."""
    write_atomically(path, json.dumps(values, indent=1) + "\n")


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Yields a temporary file beside `path`, and renames it to `path` when all its data is on the disk.

    Missing folders are created. If `path` is a link, the file that it points to is replaced. An existing file's permissions are kept.
    A device or a pipe cannot be replaced, so it is opened and written directly.
    """
    target = _replaceable(path)
    if target is None:
        with open(path, "wb") as file:
            yield file
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, temporary = _temporary(target)
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
    sync(target.parent)


@contextmanager
def new_folder(path: Path, option: str) -> Iterator[Path]:
    """Yields a temporary folder beside `path`, and renames it to `path` when its files are on the disk: all of them are there, or none.

    `option` is what gave the path, for messages. Raises: UserError if something is there already, or if nothing can be written there.
    """
    check_new(path, option)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = re.escape(f".{path.name:.100}.")
        remove_leftovers(path.parent, re.compile(rf"{begin}[a-z0-9_]{{8}}{re.escape(UNFINISHED)}"))
        handle, temporary = _temporary(path, folder=True)
    except OSError as error:
        raise UserError(f"{option}={path} cannot be written ({error.strerror}); give another folder") from None
    try:
        os.fchmod(handle, 0o777 & ~_umask())  # mkdtemp gives access only to the owner
        yield temporary
        for file in (*temporary.rglob("*"), temporary):
            sync(file)
        check_new(path, option)
        os.rename(temporary, path)
    except OSError as error:
        raise UserError(
            f"{option}={path} cannot be written ({error.strerror}); free space, or give another folder"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)
    sync(path.parent)


def _temporary(target: Path, folder: bool = False) -> tuple[int, Path]:
    """An open and locked temporary file or folder beside `target`.

    Until it is locked, another process may take it for what a killed one has left, and remove it; then another one is made.
    Raises: OSError if none can be made that stays.
    """
    names: dict[str, Any] = {"dir": target.parent, "prefix": f".{target.name:.100}.", "suffix": UNFINISHED}
    for _ in range(_TRIES):
        if folder:
            path = tempfile.mkdtemp(**names)
            try:
                handle = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
        else:
            handle, path = tempfile.mkstemp(**names)
        with suppress(OSError):  # where there are no locks, nothing is removed
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(path):
            return handle, Path(path)
        os.close(handle)
    raise FileNotFoundError(errno.ENOENT, "what is made there vanishes at once", str(target.parent))


def check_new(path: Path, option: str) -> None:
    """Raises: UserError if `path`, which `option` gives, is there already."""
    if os.path.lexists(path):
        raise UserError(f"{option}={path} is there already; give the name of a new folder, or remove it")


def lock(handle: int) -> bool:
    """Locks an open file or folder until it is closed or its process ends. Returns False if another one has locked it.

    Nothing is locked on a file system without locks; there, the answer is False too.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def continued(file: Path, what: str) -> Iterator[BinaryIO | None]:
    """Yields what an earlier process has written of `file`, to write on at its end; None if the file is there.

    The file gets its name when the context ends without an error; else its part stays, for which others may wait. While another process
    is writing it, this one waits. Raises: UserError on a file system without locks, where two could write it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.part")
    with unfinished.open("a+b") as out:
        if not lock(out.fileno()):
            log.info("another process is writing %s to %s; this one waits for it", what, unfinished)
            try:
                fcntl.flock(out.fileno(), fcntl.LOCK_EX)
            except OSError as error:
                raise UserError(
                    f"{unfinished} cannot be locked ({error.strerror}), so two processes could write it; put it on a file system with "
                    "locks"
                ) from None
        if file.exists():  # another process has finished it since this one looked
            unfinished.unlink(missing_ok=True)
            yield None
            return
        yield out
        os.replace(unfinished, file)
    sync(file.parent)


def remove_leftovers(folder: Path, pattern: re.Pattern[str] = _TEMPORARY) -> None:
    """Removes temporary files and folders whose names fit `pattern` and whose writers were killed. A living writer holds a lock."""
    for path in folder.iterdir():
        if not pattern.fullmatch(path.name) or path.is_symlink():
            continue
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:  # another process has just removed it
            continue
        try:
            if lock(handle):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _replaceable(path: str | Path) -> Path | None:
    """The regular or missing file that `path` leads to after its links are followed; None for anything else."""
    target = Path(os.path.realpath(path))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return target
    # An open file whose name was deleted can be reached through /dev/fd, but has no path of its own.
    named = target.exists() and os.path.samestat(found, target.stat())
    return target if stat.S_ISREG(found.st_mode) and named else None


def sync(path: Path) -> None:
    """Writes a file's data or a folder's entries to the disk. Without the latter, a crash may bring an old file back."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The process's umask: mkstemp creates files that only the owner can read, but a new file should have the usual permissions."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
