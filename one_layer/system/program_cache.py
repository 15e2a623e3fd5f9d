"""Compiled programs are kept between runs, in a folder whose size is limited."""

import os
from contextlib import suppress
from pathlib import Path

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
    _date_entries(folder)


def _date_entries(folder: Path) -> None:
    """Writes the time of use, which JAX needs to make room, for entries without one: JAX would fail at the first of them.

    Such entries were written without a limit, or by a process that was killed between the two files.
    """
    with suppress(OSError):  # of a folder that cannot be read or written; JAX then warns and compiles
        for entry in folder.glob("*-cache"):
            used = entry.with_name(entry.name.removesuffix("-cache") + "-atime")
            if not used.exists():
                used.write_bytes(entry.stat().st_mtime_ns.to_bytes(8, "little"))
