"""Averages the sums that updates report, writes them as lines of metrics and of the log, and counts updates that were skipped."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jaxtyping import Array

from one_layer.runs.progress import duration, time_left
from one_layer.training.metrics import MetricsLog

log = logging.getLogger(__name__)

_SILENCE = 30.0  # seconds without a line of the log


class Clock:
    """Seconds that only pass while it is not stopped: not while something compiles, nor while a run of the same program is evaluated."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now, self._stopped, self._begin = now, 0.0, 0.0
        self._stands = False

    def __call__(self) -> float:
        return (self._begin if self._stands else self._now()) - self._stopped

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A context in which no seconds pass. It may be used inside itself."""
        if self._stands:
            yield
            return
        self._begin, self._stands = self._now(), True
        try:
            yield
        finally:
            self._stopped += self._now() - self._begin
            self._stands = False


class Meter:
    """Adds up what updates report. Writes a line of means every `log_every` of the run's `updates` and at each evaluation.

    Where no terminal shows a progress bar, a line of the log says now and then how the run goes.

    An update whose loss or gradient is not finite was skipped: it is counted, and is in no mean. `skipped` counts these of the whole
    run, `in_a_row` those since the last update that was applied. A checkpoint stores `state`, so that a resumed run continues an
    unfinished line.
    """

    def __init__(
        self,
        log: MetricsLog,
        schedule: Callable[[int], Array],
        log_every: int,
        updates: int,
        seconds: float,
        state: dict[str, Any],
        clock: Clock,
    ) -> None:
        self._log, self._schedule, self._log_every = log, schedule, log_every
        self._clock, self._of = clock, updates
        self._before, self._start = seconds, clock()
        self._sums: dict[str, float] = dict(state.get("sums", {}))
        self._updates, self._spent = int(state.get("updates", 0)), float(state.get("spent", 0.0))
        self._since = seconds
        self.skipped, self.in_a_row = int(state.get("skipped", 0)), int(state.get("in_a_row", 0))
        self.tokens = 0
        self._shown = time.perf_counter()

    @property
    def state(self) -> dict[str, Any]:
        """The sums of the unfinished line, and the counts of skipped updates."""
        spent = self._spent + self.seconds() - self._since
        counts = {"skipped": self.skipped, "in_a_row": self.in_a_row}
        return {"sums": dict(self._sums), "updates": self._updates, "spent": spent, **counts}

    def seconds(self) -> float:
        """Seconds of training so far, including earlier intervals and resumed runs, without evaluations."""
        return self._before + self._clock() - self._start

    def add(self, step: int, sums: dict[str, Any]) -> dict[str, float]:
        """Adds the sums of one update, and waits until it is computed. Returns its sums as numbers; `skipped` and `in_a_row` change."""
        read = {name: float(value) for name, value in jax.device_get(sums).items()}
        if math.isfinite(read["loss"]) and math.isfinite(read["norm"]):  # as the step decides
            self.in_a_row = 0
            for name, value in read.items():
                self._sums[name] = self._sums.get(name, 0.0) + value
            self._updates += 1
            self.tokens += int(read["tokens"])
        else:
            self.in_a_row += 1
            self.skipped += 1
        if self._updates and not sys.stderr.isatty() and time.perf_counter() - self._shown >= _SILENCE:
            self._show(step, self._means(step))
        if step % self._log_every == 0:
            self.write(step)
        return read

    def write(self, step: int) -> None:
        """Writes the unfinished line if it has any updates, and begins a new one."""
        if not self._updates:
            return
        now = self.seconds()
        self._log.write(step, now, self._means(step))
        self._sums, self._updates, self._spent, self._since = {}, 0, 0.0, now

    def _show(self, step: int, means: dict[str, float]) -> None:
        self._shown = time.perf_counter()
        log.info(
            "update %d/%d  loss %.3f  rate %.2g  %.0f tokens/s  %s left",
            *(step, self._of, means["train/loss"], means["train/learning_rate"], means["train/tokens_per_second"]),
            duration(time_left(step, self._of, self.seconds())),
        )

    def _means(self, step: int) -> dict[str, float]:
        """The unfinished line."""
        sums = self._sums
        targets = max(sums["targets"], 1)  # as an update divides by them
        return {
            "train/loss": sums["loss"] / targets,
            "train/nll": sums["nll"] / targets,
            "train/gradient_norm": sums["norm"] / self._updates,
            "train/learning_rate": float(self._schedule(step - 1 - self.skipped)),  # skipped updates do not move it
            "train/tokens_per_second": sums["tokens"] / (self._spent + self.seconds() - self._since),
        }
