"""Compiled programs are kept between runs, in a folder whose size is limited."""

import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

_LOCK = ".lockfile"  # which JAX holds while it reads or writes an entry
_LIMIT = 2**30  # bytes; what a run compiles takes a few million


def keep_programs() -> None:
    """Lets JAX keep compiled programs in ~/.cache/one_layer/jax, and delete the least recently used ones beyond 1 GiB.

    Must be called before JAX is imported. A folder that the user named in JAX_COMPILATION_CACHE_DIR is left as it is: other programs may
    use it, and it has no limit unless the user sets JAX_COMPILATION_CACHE_MAX_SIZE. With a limit, JAX locks the folder (by the package
    filelock) while it reads or writes an entry, so processes may share it.
    """
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = Path.home() / ".cache" / "one_layer" / "jax"
    except RuntimeError:  # a user without a home, as in some containers: nothing is kept
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(_LIMIT))
    if folder.is_dir() and os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] != "-1":  # without a limit, no entry has a time
        _remove_undated(folder)


def _remove_undated(folder: Path) -> None:
    """Removes entries without the time of their use, which JAX writes last: a kill or a full disk may have cut such an entry off.

    JAX would never write it again, and could not make room either. Entries that were written without a limit go with them.
    """
    # Of a folder that cannot be written, JAX warns, and compiles.
    with suppress(OSError), FileLock(folder / _LOCK, timeout=10):
        for entry in folder.glob("*-cache"):
            if not entry.with_name(entry.name.removesuffix("-cache") + "-atime").exists():
                entry.unlink()
