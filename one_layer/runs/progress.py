"""How far a run is, and whether anybody works on it: read from the files in its folder. Imports no JAX."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.runs.lock import holder
from one_layer.runs.paths import RunPaths, read_metrics, read_object
from one_layer.system.errors import UserError

FINISHED, UNDER_WAY, STOPPED, WAITING = "finished", "under way", "not finished", "waiting"
_ERROR = "error: "  # begins the line by which a process says what ended it


@dataclass(frozen=True)
class Progress:
    """The last update, the number of updates (if it is known), the newest measure as text, and the seconds left (if known)."""

    update: int = 0
    updates: int | None = None
    metric: str = ""
    left: float | None = None


@dataclass(frozen=True)
class Doing:
    """What a run is doing: its state, its progress if it has not finished, and the sentence with which it failed, if it did."""

    state: str = FINISHED
    progress: Progress = Progress()
    problem: str = ""


def doing(paths: RunPaths, train: Mapping[str, Any]) -> Doing:
    """What the run in a folder is doing. `train` is that section of its config.

    It is finished, under way, not finished (it has begun, and nobody works on it), or waits to begin.
    """
    if paths.finished:
        return Doing()
    now = UNDER_WAY if holder(paths.path) else STOPPED if paths.holds_run else WAITING
    return Doing(now, progress(paths, train), mistake(log_file(paths.path)) if now == STOPPED else "")


def progress(paths: RunPaths, train: Mapping[str, Any]) -> Progress:
    """The progress of a run that has not finished. `train` is that section of its config. A run without metrics has none."""
    try:
        lines = read_metrics(paths.metrics_file)
    except UserError:  # the run itself will complain
        return Progress()
    if not lines:
        return Progress()
    update, seconds = lines[-1]["step"], lines[-1].get("seconds")
    updates = _updates(paths, train)
    left = time_left(update, updates, seconds) if updates and update and seconds is not None else None
    return Progress(update, updates, _metric(lines), left)


def log_file(folder: Path) -> Path:
    """The file for what a run of a sweep prints."""
    whole = Path(os.path.abspath(folder))  # `.` has no name
    return whole.with_name(f"{whole.name}.log")


def last_line(log: Path, begin: int) -> str:
    """The last line of a log after byte `begin`; empty if there is none."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(begin)
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def mistake(log: Path, begin: int = 0) -> str:
    """The sentence with which a process ended, from its log after byte `begin`; empty if its last line is none."""
    said = last_line(log, begin)
    return said.removeprefix(_ERROR) if said.startswith(_ERROR) else ""


def _updates(paths: RunPaths, train: Mapping[str, Any]) -> int | None:
    """The number of updates, if `train.patience` ends the run no earlier. A run of epochs has noted how many updates an epoch has."""
    updates, epochs = train.get("updates") or 0, train.get("epochs") or 0
    if not epochs:
        return updates or None
    try:
        an_epoch = read_object(paths.identity_file).get("epoch_updates")
    except UserError:
        an_epoch = None
    return min(epochs * an_epoch, updates or epochs * an_epoch) if isinstance(an_epoch, int) else None


def _metric(lines: list[dict[str, Any]]) -> str:
    """The newest validation score, or the training loss before the first one."""
    for line in reversed(lines):
        for name in ("valid/bleu", "valid/accuracy", "valid/nll"):
            if name in line:
                return f"{name} {float(line[name]):.4g}"  # "nan" is a string in the file
    loss = lines[-1].get("train/loss")
    return "" if loss is None else f"train/loss {float(loss):.4g}"


def time_left(update: int, updates: int, seconds: float) -> float:
    """The seconds that the rest of a run takes, from those of the updates until now. Evaluations are not counted."""
    return max(updates - update, 0) * seconds / update


def duration(seconds: float) -> str:
    """A duration for people, such as `40 s`, `12 min` or `3 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
