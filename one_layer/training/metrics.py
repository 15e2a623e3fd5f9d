"""The metrics of a run: lines of JSON, the same values for TensorBoard, and the share of mask bits that changed."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt8
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

from one_layer.files import write_atomically
from one_layer.layers.matrix import ONE_AFTER_THE_OTHER, Selecting, select
from one_layer.runs.folder import RunFolder
from one_layer.runs.paths import read_metrics
from one_layer.supermask import Supermask


class MetricsLog:
    """`metrics.jsonl`, with one object per line that has `step` and `seconds`, and TensorBoard events beside it.

    When a run is resumed, the lines after the step of the restored checkpoint are deleted: they will be written again.
    """

    def __init__(self, folder: RunFolder, step: int) -> None:
        kept = [line for line in read_metrics(folder.metrics_file) if line["step"] <= step]
        write_atomically(folder.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = folder.metrics_file.open("a", encoding="utf-8")
        self._board = _Board(folder.tensorboard, step + 1)

    def write(self, step: int, seconds: float, values: dict[str, float]) -> None:
        """Appends one line. `seconds`: the training time so far, including the time before a resumption.

        JSON has no numbers that are not finite; they are written as the strings "nan", "inf" and "-inf", which float() reads.
        """
        plain = {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
        self._file.write(json.dumps({"step": step, "seconds": round(seconds, 3), **plain}) + "\n")
        self._file.flush()
        self._board.write(step, values)

    def close(self) -> None:
        """Closes the files when everything is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._board.close()


class NoLog(MetricsLog):
    """The log of a process that does not write into the run's folder: it keeps nothing."""

    def __init__(self) -> None:
        pass

    def write(self, step: int, seconds: float, values: dict[str, float]) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def log_of(folder: RunFolder, step: int) -> MetricsLog:
    """The log of a run that is at update `step`."""
    return MetricsLog(folder, step) if folder.writes else NoLog()


class _Board:
    """A file of TensorBoard events. It hides events of earlier files in the folder from step `first` on.

    SummaryWriter is not used, because it passes events to a thread that keeps them for up to two minutes, and its flush does not wait
    for that thread, so a kill would lose them. Here, every event is in the file when `write` returns.
    """

    def __init__(self, folder: Path, first: int) -> None:
        folder.mkdir(exist_ok=True)
        # The time in nanoseconds, because two files of the same second would have the same name.
        self._writer = EventsWriter(str(folder / "events"), f".{time.time_ns()}")
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


@partial(jax.tree_util.register_dataclass, data_fields=["bits", "negative"], meta_fields=["count"])
@dataclass(frozen=True, eq=False)
class PackedMask:
    """Where the masks of all layers of a matrix are above 0 and, if they have a sign, below 0: `count` entries.

    The bits of each column are padded to whole bytes.
    """

    bits: UInt8[Array, "*layers bytes columns"]
    negative: UInt8[Array, "*layers bytes columns"] | None
    count: int


Masks = dict[str, PackedMask]


def packed_masks(params: Any, mask: Supermask, selecting: Selecting = ONE_AFTER_THE_OTHER) -> Masks:
    """Every mask of a model, by the path of its scores. Layers are packed separately."""
    named = {tuple(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
    scores = {path: leaf for path, leaf in named.items() if path[-1] == "scores"}

    def packed(entries: Array) -> PackedMask:
        negative = jnp.packbits(entries < 0, axis=-2) if mask.selection == "signed_threshold" else None
        return PackedMask(jnp.packbits(entries > 0, axis=-2), negative, entries.size)

    return {"/".join(path): packed(entries) for path, entries in select(scores, mask, selecting).items()}


def flipped_share(before: Masks, after: Masks) -> float:
    """The share of all entries of masks that differ, in [0, 1]. Padding bits do not count."""
    flips = [int(number) for number in _flips(before, after)]
    return sum(flips) / sum(mask.count for mask in before.values())


@jax.jit
def _flips(before: Masks, after: Masks) -> list[Int[Array, ""]]:
    # One program: on many devices every sum is an exchange, and a row of small programs with exchanges can stop a CPU for ever.
    def differing(one: PackedMask, other: PackedMask) -> UInt8[Array, "*layers bytes columns"]:
        bits = one.bits ^ other.bits
        return bits if one.negative is None or other.negative is None else bits | (one.negative ^ other.negative)

    flips = [jnp.bitwise_count(differing(mask, after[name])) for name, mask in before.items()]
    return [jnp.sum(each, dtype=jnp.int32) for each in flips]
