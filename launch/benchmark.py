"""Measures one thing as a ratio inside one run, prints a short table and appends one JSON line to a file.

    python launch/benchmark.py NAME [--size=small] [--quick] [--out=FILE] [--picture=FILE.svg]

NAME is one of:
- `select`: making a mask by counting, compared with sorting.
- `train`: a masked training step, compared with a dense one, and the memory of the masked step; also PyTorch's steps if it is installed,
  or if ONE_LAYER_TORCH names a Python that has it.
- `precision`: a training step in bfloat16, compared with float32, also for the recipes `best` and `best_wide` of configs/multi30k.py.
- `floor`: where the time of a training step goes, beside what this machine needs at least.
- `accelerator`: training steps of all weights in float32 and bfloat16, with operations per second; for accelerators.
- `decode`: speed and memory of beam search with packed masks, with weights that are masked beforehand, and with a dense model; with
  --peer=ctranslate2, the speed of beam search beside CTranslate2's, of a random model or of --ticket on the raw lines of --text.
- `ticket`: the size of a ticket and its loading time.
- `data`: lines per second of preparation; batches from a million memory-mapped pairs, compared with what training needs.
- `reservoirs`: operations, optimiser state and time of a training step with 0 to 3 reservoirs of each kind, and with backskipping.
- `frozen`: the update of a head on layers whose masks are frozen, compared with frozen dense layers.
- `devices`: the time of a training step on 1 to 8 CPU devices, the memory of a device, and the bytes between devices.
- `growth`: how the time of decoding grows with beam, batch, length and depth, and that of training with width and depth.
- `startup`: the time from the start of a process to the first translated line.

The two sides of a ratio run alternately, so that a busy machine slows both equally. All times are medians.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import jaxlib

from configs.common import SIZES
from launch.benchmarks import (
    accelerator,
    beside,
    data,
    decode,
    devices,
    floor,
    frozen,
    growth,
    precision,
    reservoirs,
    select,
    startup,
    ticket,
    train,
)
from one_layer.cli import command
from one_layer.runs.commit import commit
from one_layer.runs.records import flatten
from one_layer.system.heap import keep_freed_memory

BENCHMARKS = {
    "select": select,
    "train": train,
    "precision": precision,
    "floor": floor,
    "accelerator": accelerator,
    "decode": decode,
    "ticket": ticket,
    "data": data,
    "reservoirs": reservoirs,
    "frozen": frozen,
    "devices": devices,
    "growth": growth,
    "startup": startup,
}
_ABOUT = ("benchmark", "size", "device", "jax", "jaxlib", "python", "cpus", "xla_flags", "commit")


def _print(result: dict[str, Any]) -> None:
    """Prints one table of the single values, and one table for each list of rows."""
    measured = flatten({name: value for name, value in result.items() if name not in _ABOUT})
    lists = {name: value for name, value in measured.items() if isinstance(value, list) and isinstance(value[0], dict)}
    once = {name: value for name, value in measured.items() if name not in lists}
    for rows in ([once] if once else [], *lists.values()):
        for cells in [list(rows[0]), *(map(_cell, row.values()) for row in rows)] if rows else []:
            print("  ".join(f"{cell:>{max(14, len(name))}}" for name, cell in zip(rows[0], cells, strict=True)))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model, as in configs/common.py")
    parser.add_argument("--quick", action="store_true", help="run fewer rounds")
    parser.add_argument("--out", type=Path, help="file to which the result is appended, as one line of JSON")
    parser.add_argument("--picture", type=Path, help="an .svg file for the curves of `growth`")
    parser.add_argument("--peer", choices=("ctranslate2",), help="for `decode`: the engine to compare with")
    parser.add_argument(
        "--ticket", type=Path, help="for --peer: a trained translation model, in the place of a random one"
    )
    parser.add_argument("--text", type=Path, help="for --ticket: a file of raw lines to translate")
    arguments = parser.parse_args()
    if arguments.picture and (arguments.name != "growth" or arguments.picture.suffix != ".svg"):
        parser.error(f"--picture={arguments.picture}: only growth draws one, and the file must end in .svg")
    if arguments.peer and arguments.name != "decode":
        parser.error(f"--peer={arguments.peer}: only decode has this peer")
    if bool(arguments.ticket) != bool(arguments.text) or (arguments.ticket and not arguments.peer):
        parser.error("--ticket and --text go together, and with --peer")
    keep_freed_memory()  # as training does
    about = {
        "benchmark": arguments.name,
        "size": arguments.size,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "commit": commit(),
    }
    if arguments.peer:
        measured = beside.measure(arguments.size, arguments.quick, arguments.ticket, arguments.text)
    else:
        measured = BENCHMARKS[arguments.name].measure(arguments.size, arguments.quick)
    result = {**about, **measured}
    _print(result)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    if arguments.picture:
        growth.draw(result, arguments.picture)


if __name__ == "__main__":
    logging.getLogger("jax").setLevel(logging.WARNING)
    command.run(main)
