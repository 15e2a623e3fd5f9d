"""Says in the log how a run goes: how long it will take, and, where there is no terminal with a progress bar, a line now and then."""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable

from one_layer.runs.progress import duration

log = logging.getLogger(__name__)

_SILENCE = 30.0  # seconds without a line
_MEASURED = 20  # updates before the length of the run is said
_WINDOW = 50  # updates whose durations count


class ProgressLine:
    """The log's lines about a run of `updates` updates that is evaluated after every `evaluate_every`.

    `terminal`: whether standard error is one; there, a progress bar takes the place of the lines.
    """

    def __init__(
        self,
        updates: int,
        evaluate_every: int,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._updates, self._evaluate_every, self._clock = updates, evaluate_every, clock
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._durations: deque[float] = deque(maxlen=_WINDOW)
        self._counted, self._evaluation = 0, 0.0
        self.start()
        self._shown, self._shown_step = self._before, 0

    def start(self) -> None:
        """Begins to measure updates, for instance after an evaluation."""
        self._before = self._clock()

    def evaluated(self) -> None:
        """Counts the time since the last update as that of an evaluation."""
        self._evaluation = self._clock() - self._before
        self.start()

    def updated(self, step: int) -> bool:
        """Counts an update. Returns whether the log was silent for so long that it needs a line."""
        now = self._clock()
        self._durations.append(now - self._before)
        self._before = now
        self._counted += 1
        if self._counted == _MEASURED and step < self._updates:
            log.info("the run takes about %s more, at %.2g s an update", duration(self._left(step)), self._an_update())
        return not self._terminal and now - self._shown >= _SILENCE

    def show(self, step: int, loss: float, rate: float, speed: float) -> None:
        """Writes a line, unless there is a progress bar or a line of this update. `speed`: tokens a second; `rate`: the learning rate."""
        if self._terminal or step == self._shown_step:
            return
        self._shown, self._shown_step = self._clock(), step
        # The first updates are compiled, and say nothing about the others.
        left = f"  {duration(self._left(step))} left" if self._counted >= _MEASURED else ""
        log.info("update %d/%d  loss %.3f  rate %.2g  %.0f tokens/s%s", step, self._updates, loss, rate, speed, left)

    def _an_update(self) -> float:
        """Mean seconds of the latest updates, without those in which a program was compiled."""
        if not self._durations:
            return 0.0
        usual = 5 * statistics.median(self._durations)
        return statistics.fmean(each for each in self._durations if each <= usual)

    def _left(self, step: int) -> float:
        evaluations = -(-self._updates // self._evaluate_every) - step // self._evaluate_every
        return (self._updates - step) * self._an_update() + evaluations * self._evaluation
