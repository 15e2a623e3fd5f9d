"""Writing files so that a reader sees the old content or the new, never a half."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Writes `data` (text as UTF-8) to a temporary name beside `path`, then renames it over `path`."""
    with replacing(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write, under a temporary name beside `path`, which takes the place of `path` once everything is in it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """mkstemp makes files that their owner alone may read; give them the permissions of an ordinary new file."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
