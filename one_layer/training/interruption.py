"""Handles Ctrl-C, SIGTERM and USR2, SLURM's warning, during training.

The loop notices them between two updates, so that it can save a checkpoint first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)


class Interruption:
    """A context in which the first SIGINT, SIGTERM or SIGUSR2 only sets `signal`; a second SIGINT or SIGTERM acts as usual.

    SLURM may send SIGUSR2 again, or after SIGTERM, while the checkpoint is being saved; that changes nothing.

    Outside the main thread, signals cannot be caught, and the context does nothing.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._notice) for number in _SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _notice(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            with contextlib.suppress(OSError):  # not by `print`, which a signal may have interrupted
                os.write(2, b"stopping after this update; a second signal stops at once\n")
            self._restore(signal.SIGINT, signal.SIGTERM)

    def _restore(self, *numbers: int) -> None:
        for number in numbers or tuple(self._former):
            former = self._former.pop(number, signal.SIG_DFL)
            signal.signal(number, signal.SIG_DFL if former is None else former)  # None: a handler that is not Python's


class Interrupted(KeyboardInterrupt):
    """The signal `number` asked training to stop; a checkpoint of update `step` was saved."""

    def __init__(self, number: int, step: int) -> None:
        super().__init__(number, step)
        self.number, self.step = number, step
