"""What starts the runs of a sweep: the protocol of launchers, and the launcher that runs processes on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

from one_layer.runs.progress import last_line, log_file
from one_layer.sweeps.plan import Run


@runtime_checkable
class Job(Protocol):
    """A run that was started. It has finished if it left a result, and only then."""

    def ended(self) -> str | None:
        """None while the run works; then what went wrong, which is empty for a run that finished."""

    def stop(self, number: int) -> None:
        """Sends the signal `number` to the run."""


@runtime_checkable
class Launcher(Protocol):
    """Starts runs. Jobs that are `detached` go on when the sweep's program ends."""

    detached: bool

    def choose(self, ready: list[Run], working: int) -> list[Run]:
        """Which of the runs that are `ready` shall start now; `working` runs have not ended yet."""

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs."""


class LocalLauncher:
    """Starts `program` as a process of this machine for each run; what a run prints goes to NAME.log beside its folder."""

    detached = False

    def __init__(self, program: list[str], at_once: int) -> None:
        self._at_once, self._program = at_once, program

    def choose(self, ready: list[Run], working: int) -> list[Run]:
        """The first ones, so that `at_once` runs work."""
        return ready[: self._at_once - working]

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs."""
        return [_Process(run, self._program) for run in runs]


class _Process:
    """A run in a process of its own. Its group is its own too, so that Ctrl-C reaches it once, through `stop`."""

    def __init__(self, run: Run, program: list[str]) -> None:
        self._run, self._log = run, log_file(run.folder)
        self._process, self._begin = started([*program, *run.words], self._log)

    def ended(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        if self._run.paths.result_file.exists():  # whatever the exit code: the next command will find this result too
            return ""
        return problem(code, self._log, self._begin)

    def stop(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)


def started(words: list[str], log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Starts a command as a process with a group of its own. What it prints goes to `log`, after the byte that is returned too."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=END_WITH_PARENT,
        )
    return process, begin


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
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Asks Linux to send SIGTERM to this process when the program that started it ends, so that no run goes on unseen."""
    assert _LIBC is not None
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGTERM)


END_WITH_PARENT = _end_with_parent if sys.platform == "linux" else None  # Popen's preexec_fn
