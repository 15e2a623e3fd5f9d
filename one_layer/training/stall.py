"""Says in the log when no update has finished for a while, so that a job that hangs can be told from one that is slow."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

log = logging.getLogger(__name__)


class StallWatch:
    """A context that logs a line after every `minutes` in which no update has finished; never, if `minutes` is 0."""

    def __init__(self, minutes: float, step: int) -> None:
        self._seconds, self._step, self._last = 60 * minutes, step, time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall", daemon=True)

    def finished(self, step: int) -> None:
        """Notes that update `step` has finished."""
        self._step, self._last = step, time.monotonic()

    def __enter__(self) -> StallWatch:
        if self._seconds:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()

    def _watch(self) -> None:
        said = 0
        while not self._over.wait(min(self._seconds, 1.0)):
            periods = int((time.monotonic() - self._last) / self._seconds)
            if periods > said:
                log.warning(
                    "no update has finished for %.3g minutes; the last one was update %d (compiling the first one takes a while)",
                    periods * self._seconds / 60,
                    self._step,
                )
            said = periods
