"""The metrics of a run: lines of JSON, and the same values for TensorBoard."""

import json
import math
import os
import time
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

from one_layer.runs.folder import RunFolder
from one_layer.runs.paths import read_metrics
from one_layer.system.files import write_atomically


class MetricsLog:
    """`metrics.jsonl`, with one object per line that has `step` and `seconds`, and TensorBoard events beside it.

    When a run is resumed, the lines that will be written again are deleted: those after the step of the restored checkpoint and,
    if the checkpoint was saved before the evaluation of its step (`evaluated` is False), that evaluation's line. A process that does not
    write into the run's folder keeps nothing.
    """

    def __init__(self, folder: RunFolder, step: int, evaluated: bool = True) -> None:
        self._writes = folder.writes
        if not self._writes:
            return
        kept = cut(folder, step, evaluated)
        self._file = folder.metrics_file.open("a", encoding="utf-8")
        self._board = _Board(folder.tensorboard, step + evaluated)
        for line in kept if not evaluated else []:
            if line["step"] == step:  # hidden with that evaluation
                self._board.write(
                    step, {name: float(value) for name, value in line.items() if name not in ("step", "seconds")}
                )

    def write(self, step: int, seconds: float, values: dict[str, float]) -> None:
        """Appends one line. `seconds`: the training time so far, including the time before a resumption.

        JSON has no numbers that are not finite; they are written as the strings "nan", "inf" and "-inf", which float() reads.
        """
        if not self._writes:
            return
        plain = {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
        self._file.write(json.dumps({"step": step, "seconds": round(seconds, 3), **plain}) + "\n")
        self._file.flush()
        self._board.write(step, values)

    def close(self) -> None:
        """Closes the files when everything is on the disk."""
        if not self._writes:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._board.close()


def cut(folder: RunFolder, step: int, evaluated: bool) -> list[dict[str, Any]]:
    """Deletes the lines of `metrics.jsonl` that come after a checkpoint, as `MetricsLog` says. Returns: the others."""
    kept = [
        line
        for line in read_metrics(folder.metrics_file)
        if line["step"] < step or (line["step"] == step and (evaluated or "valid/nll" not in line))
    ]
    if folder.writes and folder.metrics_file.exists():
        write_atomically(folder.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))
    return kept


class _Board:
    """A file of TensorBoard events. It hides events of earlier files in the folder from step `first` on.

    SummaryWriter is not used, because it passes events to a thread that keeps them for up to two minutes, and its flush does not wait
    for that thread, so a kill would lose them. Here, every event is in the file when `write` returns.
    """

    def __init__(self, folder: Path, first: int) -> None:
        folder.mkdir(exist_ok=True)
        # Files are read in the order of their names, which must not depend on a clock that may be set back.
        number = sum("tfevents" in path.name for path in folder.iterdir())
        self._writer = EventsWriter(str(folder / f"events.part{number:05d}"))
        self._add(Event(step=first, session_log=SessionLog(status=SessionLog.START)))

    def write(self, step: int, values: dict[str, float]) -> None:
        """Adds the values of a step."""
        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._add(Event(step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()

    def _add(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)
        self._writer.flush()
