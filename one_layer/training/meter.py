"""Averages the sums that updates report, and writes a line of metrics every `log_every` updates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array

from one_layer.errors import UserError
from one_layer.training.metrics import MetricsLog
from one_layer.training.progress_line import ProgressLine

NOT_A_NUMBER = (
    "the {what} is {value} at update {step}: training has diverged; lower optim.lr, lengthen optim.warmup or set optim.clip. "
    "The checkpoints before that update are good"
)


class Meter:
    """Adds up what updates report. Writes a line of means every `log_every` updates and at each evaluation.

    A checkpoint stores `state`, so that a resumed run continues an unfinished line. A loss that is not finite stops the run.
    """

    def __init__(
        self,
        log: MetricsLog,
        schedule: Callable[[int], Array],
        log_every: int,
        seconds: float,
        state: dict[str, Any],
        line: ProgressLine,
    ) -> None:
        self._log, self._schedule, self._log_every, self._line = log, schedule, log_every, line
        self._before, self._start = seconds, time.perf_counter()
        self._sums: dict[str, float] = dict(state.get("sums", {}))
        self._updates, self._spent = int(state.get("updates", 0)), float(state.get("spent", 0.0))
        self._since = seconds
        self.tokens = 0

    @property
    def state(self) -> dict[str, Any]:
        """The sums of the unfinished line."""
        return {"sums": self._sums, "updates": self._updates, "spent": self._spent + self.seconds() - self._since}

    def seconds(self) -> float:
        """Seconds of training so far, including earlier intervals and resumed runs, without evaluations."""
        return self._before + time.perf_counter() - self._start

    def add(self, step: int, sums: dict[str, Array]) -> None:
        """Adds the sums of one update, and waits until it is computed. Raises: UserError for a loss or gradient that is not finite."""
        read = {name: float(value) for name, value in jax.device_get(sums).items()}
        for name, what in {"loss": "loss", "norm": "gradient's norm"}.items():
            if not math.isfinite(read[name]):
                raise UserError(NOT_A_NUMBER.format(what=what, value=read[name], step=step))
        for name, value in read.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._updates += 1
        self.tokens += int(read["tokens"])
        silent = self._line.updated(step)
        if step % self._log_every == 0:
            self.write(step)
        elif silent:
            self._show(step, self._means(step))

    def write(self, step: int) -> None:
        """Writes the unfinished line if it has any updates, and begins a new one."""
        if not self._updates:
            return
        means, now = self._means(step), self.seconds()
        self._show(step, means)
        self._log.write(step, now, means)
        self._sums, self._updates, self._spent, self._since = {}, 0, 0.0, now

    def _show(self, step: int, means: dict[str, float]) -> None:
        names = ("train/loss", "train/learning_rate", "train/tokens_per_second")
        self._line.show(step, *(means[name] for name in names))

    def _means(self, step: int) -> dict[str, float]:
        """The unfinished line."""
        sums = self._sums
        return {
            "train/loss": sums["loss"] / sums["targets"],
            "train/nll": sums["nll"] / sums["targets"],
            "train/gradient_norm": sums["norm"] / self._updates,
            "train/learning_rate": float(self._schedule(step - 1)),
            "train/tokens_per_second": sums["tokens"] / (self._spent + self.seconds() - self._since),
        }
