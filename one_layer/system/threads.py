"""Calls of a function that run at the same time, in threads or in the processes of a pool."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


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
        yield from in_pool(pool, function, each(), at_once)


def in_pool(
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
