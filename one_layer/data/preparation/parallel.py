"""Applies a function to many items in several processes or threads."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from one_layer.system.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Returns the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(function: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """Yields the results of `map(function, items)`, computed in `processes` new processes (1: in this process).

    At most `processes` + 1 items are in work at a time, so memory use does not depend on the number of items.
    Raises: UserError if a process is killed.
    """
    if processes == 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(processes, context, initializer=_end_with_parent) as pool:
            yield from _in_pool(pool, function, items, processes + 1)
    except BrokenProcessPool:
        raise UserError(
            f"one of {processes} processes was killed, probably because memory ran out; free some memory, or use fewer cores (taskset)"
        ) from None


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], at_once: int, between: Callable[[], None]
) -> Iterator[Result]:
    """The results for `items`, in order, of which `at_once` are computed at the same time.

    `between` is called by the caller's thread, before each. One item alone, or one at a time, needs no other thread.
    """

    def each() -> Iterator[Item]:
        for item in items:
            between()
            yield item

    if at_once == 1 or len(items) == 1:
        yield from map(function, each())
        return
    with ThreadPoolExecutor(at_once) as pool:
        yield from _in_pool(pool, function, each(), at_once)


def _in_pool(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], at_once: int
) -> Iterator[Result]:
    """The results for `items`, in order, from a pool that has at most `at_once` of them in work, however many there are."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) == at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _end_with_parent() -> None:
    """Runs in each process of a pool: ends the process when its parent is killed, and leaves Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yields lists of `size` items; the last list may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
