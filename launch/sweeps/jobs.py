"""What starts the runs of a sweep: the protocol of launchers, and the launcher that runs processes on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from launch.sweeps.plan import Run, command_line


class Job(Protocol):
    """A run that was started."""

    def ended(self) -> str | None:
        """None while the run works; then what went wrong, which is empty for a run that finished."""

    def stop(self, number: int) -> None:
        """Sends the signal `number` to the run."""


class Launcher(Protocol):
    """Starts runs, at most `at_once` at the same time. Jobs that are `detached` go on when the sweep's program ends."""

    at_once: int
    detached: bool

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs."""


class LocalLauncher:
    """Starts `main` as a process of this machine for each run; what a run prints goes to NAME.log beside its folder."""

    detached = False

    def __init__(self, main: Path, at_once: int) -> None:
        self.at_once, self._main = at_once, main

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs."""
        return [_Process(run, self._main) for run in runs]


class _Process:
    """A run in a process of its own. Its group is its own too, so that Ctrl-C reaches it once, through `stop`."""

    def __init__(self, run: Run, main: Path) -> None:
        self._run, self._log = run, log_file(run)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._begin = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command_line(main, run),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    def ended(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        if code == 0 and self._run.paths.result_file.exists():
            return ""
        return problem(self._log, self._begin) or f"it ended with exit code {code} and without a result"

    def stop(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)


def log_file(run: Run) -> Path:
    """The file for what a run prints."""
    return run.folder.with_name(f"{run.name}.log")


def problem(log: Path, begin: int = 0) -> str:
    """The last line of a log after byte `begin`: the sentence that tells why a run ended."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(begin)
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""


_SET_PDEATHSIG = 1  # of prctl(2)
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Asks Linux to send SIGTERM to this process when the sweep's program is killed, so that no run goes on unseen."""
    assert _LIBC is not None
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGTERM)
