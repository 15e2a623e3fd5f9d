"""What starts the runs of a sweep, here as processes on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

from one_layer.runs.progress import last_line, log_file
from one_layer.sweeps.plan import Run


class Job(ABC):
    """A run that was started. It has finished if it left a result, and only then."""

    # Takes signals for the run, perhaps for several; None if it belongs to somebody else.
    process: Process | None = None

    @abstractmethod
    def ended(self) -> str | None:
        """None while the run works; then what went wrong, if it left no result."""


class Launcher:
    """Starts `program` as a process of this machine for each run; what a run prints goes to NAME.log beside its folder.

    Other launchers are subclasses. Jobs that are `detached` go on when the sweep's program ends.
    """

    detached = False

    def __init__(self, program: list[str], at_once: int) -> None:
        self._at_once, self._program = at_once, program

    def choose(self, ready: list[Run], working: int) -> list[Run]:
        """Which of the runs that are `ready` shall start now, while `working` have not ended: the first ones, so that `at_once` work."""
        return ready[: max(self._at_once - working, 0)]

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs."""
        return [Process([*self._program, *run.words], log_file(run.folder)) for run in runs]


class Process(Job):
    """A command as a process. Its group is its own, so that Ctrl-C reaches it once, through `stop`. What it prints goes to `log`."""

    def __init__(self, words: list[str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.process, self._log, self._begin = self, log, size(log)
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=END_WITH_PARENT,
            )

    def ended(self) -> str | None:
        """None while the process works; then why it ended."""
        code = self._process.poll()
        return None if code is None else problem(code, self._log, self._begin)

    def stop(self, number: int) -> None:
        """Sends the signal `number`."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)


def size(log: Path) -> int:
    """The bytes of a log, which may not be there yet."""
    return log.stat().st_size if log.exists() else 0


def problem(code: int, log: Path, begin: int = 0) -> str:
    """The sentence that tells why a process ended with this exit code: the last line of its log after byte `begin`.

    A process that was killed had no time to say so: its last line is only what it did until then.
    """
    said = last_line(log, begin).removeprefix("error: ")
    if code >= 0:
        return said or f"it ended with exit code {code} and without a result"
    memory = "; perhaps memory ran out" if -code == signal.SIGKILL else ""
    return f"it was killed by signal {-code}{memory}" + (f"; its last line: {said}" if said else "")


_SET_PDEATHSIG = 1  # of prctl(2)
_LIBC = ctypes.CDLL(None)


def _end_with_parent() -> None:
    """Asks Linux to send SIGTERM to this process when the program that started it ends, so that no run goes on unseen."""
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGTERM)


END_WITH_PARENT = _end_with_parent if sys.platform == "linux" else None  # Popen's preexec_fn
