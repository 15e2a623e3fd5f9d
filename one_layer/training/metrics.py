"""What a run measures: a line of JSON each time, the same for TensorBoard, and how far the masks moved."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt8
from tensorboardX import SummaryWriter

from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.runs.folder import RunFolder
from one_layer.supermask import Supermask


class MetricsLog:
    """`metrics.jsonl`, one object a line with `step` and `seconds`, and TensorBoard events beside it.

    Opened at the step of a restored checkpoint, it drops the lines that come after it: they will be written again.
    """

    def __init__(self, folder: RunFolder, step: int) -> None:
        kept = [line for line in read_metrics(folder.metrics_file) if line["step"] <= step]
        write_atomically(folder.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = folder.metrics_file.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder.tensorboard), purge_step=step + 1)

    def write(self, step: int, seconds: float, values: dict[str, float]) -> None:
        """Appends one line. `seconds` of training so far, those before a resumption included."""
        self._file.write(json.dumps({"step": step, "seconds": round(seconds, 3), **values}) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Makes sure that everything is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; none where there is no such file. A last line cut short by a kill is left out."""
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    lines = text.split("\n")[:-1] if text else []
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove the line, or the file, and run again") from None


Masks = dict[str, UInt8[Array, "..."]]  # [bytes], or [layers, bytes]


def packed_masks(params: Any, mask: Supermask) -> Masks:
    """Every mask of a model, one bit a weight (1 where it is above 0), by the path of its scores. Layers are packed one by one."""

    def pack(scores: Float[Array, "fan_in fan_out"]) -> UInt8[Array, "bytes"]:
        return jnp.packbits(mask(scores).reshape(-1) > 0)

    masks = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if path[-1].key == "scores":
            masks[jax.tree_util.keystr(path)] = jax.lax.map(pack, leaf) if leaf.ndim == 3 else pack(leaf)
    return masks


def flipped_share(before: Masks, after: Masks) -> Float[Array, ""]:
    """The share of all mask bits that differ, in [0, 1]; those that fill up a mask's last byte count as equal ones."""
    flips = sum(jnp.sum(jnp.bitwise_count(before[name] ^ after[name]), dtype=jnp.float32) for name in before)
    bits = sum(mask.size for mask in before.values()) * 8
    return jnp.asarray(flips / bits, jnp.float32)
