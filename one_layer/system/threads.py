"""Calls of a function that run at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], at_once: int, between: Callable[[], None]
) -> Iterator[Result]:
    """The results for `items`, in order, of which `at_once` are computed at the same time.

    `between` is called by the caller's thread, before each. One item alone, or one at a time, needs no other thread.
    """
    if at_once == 1 or len(items) == 1:
        for item in items:
            between()
            yield function(item)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        for item in items:
            between()
            waiting.append(pool.submit(function, item))
            if len(waiting) == at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
