"""Lets the process keep the memory that it frees, so that the next update does not have to ask the system for it again, and look for
garbage less often.
"""

import ctypes
import gc
import os
import platform

# mallopt's names for its settings, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> None:
    """Tells glibc's malloc to keep freed memory.

    XLA frees the large buffers of a step at its end. By default, glibc returns them to the system, and the next step gets them back page
    by page, each filled with zeros. At the size `small` this is a third of a masked step on a CPU. With one arena and no mapped blocks,
    every buffer is reused instead; the process then stays as large as it was at its peak.

    Must be called before other threads start, since arenas that exist are not given up. Settings of the user's own in GLIBC_TUNABLES or
    MALLOC_* stay as they are. Other libraries than glibc are left alone.
    """
    chosen = "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") for name in os.environ
    )
    if chosen or platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for name, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1)):  # a threshold of -1 turns trimming off
        mallopt(name, value)


def collect_seldom() -> None:
    """Lets Python look for garbage in cycles after 20,000 new objects, and not after 700 as by default.

    A program that starts makes objects and hardly any garbage: looking for it took a seventh of the time to a first translated line.
    """
    gc.set_threshold(20_000)
