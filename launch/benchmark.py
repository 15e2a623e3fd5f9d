"""Measures one thing as a ratio inside one run, prints a short table and appends one JSON line to a file.

    python launch/benchmark.py NAME [--size=small] [--quick] [--peer=torch] [--out=FILE]

NAME is one of:
- `select`: making a mask by counting, compared with sorting.
- `train`: a masked training step, compared with a dense one, and the memory of the masked step; also PyTorch's steps if it is installed,
  or if ONE_LAYER_TORCH names a Python that has it.
- `accelerator`: training steps of all weights in bfloat16 and float32, with and without dropout, with operations per second; for
  accelerators. With --peer=torch, PyTorch's compiled steps in the same table.
- `run`: a whole training, compared with its updates alone: what reading text, placing batches and fetching metrics cost.
- `decode`: speed and memory of beam search with packed masks, with weights that are masked beforehand, and with a dense model.
- `ticket`: the size of a ticket and its loading time.
- `data`: batches from a million memory-mapped pairs, compared with what training needs.
- `startup`: the time from the start of a process to the first translated line.

The two sides of a ratio run alternately, so that a busy machine slows both equally. All times are medians.
"""

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
from launch.benchmarks import accelerator, data, decode, run, select, startup, ticket, train
from one_layer.cli import command
from one_layer.data.preparation.parallel import cores
from one_layer.runs.commit import commit
from one_layer.runs.records import flatten
from one_layer.system.heap import keep_freed_memory

_MODULES = (select, train, accelerator, run, decode, ticket, data, startup)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}


def _print(result: dict[str, Any]) -> None:
    """Prints one table of the single values, and one table for each list of rows."""
    measured = flatten(result)
    lists = {name: value for name, value in measured.items() if isinstance(value, list) and isinstance(value[0], dict)}
    once = {name: value for name, value in measured.items() if name not in lists}
    for rows in ([once] if once else [], *lists.values()):
        for cells in [rows[0], *(row.values() for row in rows)] if rows else []:
            texts = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
            print("  ".join(f"{text:>{max(14, len(name))}}" for name, text in zip(rows[0], texts, strict=True)))


def main() -> None:
    """Runs the command line."""
    parser = command.parser_of(__doc__)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model, as in configs/common.py")
    parser.add_argument("--peer", choices=("torch",), help="of accelerator: whose updates are measured too")
    parser.add_argument("--quick", action="store_true", help="run fewer rounds")
    parser.add_argument("--out", type=Path, help="file to which the result is appended, as one line of JSON")
    arguments = parser.parse_args()
    if arguments.peer and arguments.name != "accelerator":
        parser.error(f"--peer belongs to accelerator, not to {arguments.name}")
    if arguments.out and arguments.out.is_dir():
        parser.error(f"--out={arguments.out} is a folder; give a file")
    keep_freed_memory()  # as training does
    about = {
        "benchmark": arguments.name,
        "size": arguments.size,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "python": platform.python_version(),
        "cpus": cores(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "commit": commit(),
    }
    more = {"peer": arguments.peer} if arguments.peer else {}
    result = BENCHMARKS[arguments.name].measure(arguments.size, arguments.quick, **more)
    _print(result)  # first, so that it is seen though the file cannot be written
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**about, **result}) + "\n")


if __name__ == "__main__":
    logging.getLogger("jax").setLevel(logging.WARNING)
    command.run(main)
