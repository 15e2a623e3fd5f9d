"""Measures one thing as a ratio inside one run, prints a short table and appends one JSON line to a file.

    python launch/benchmark.py NAME [--size=small] [--quick] [--out=FILE]

NAME: `select` (a mask by counting against one by sorting), `train` (a masked training step against a dense one, and the memory
of the first), `decode` (beam search with packed masks, with masks multiplied out beforehand, and dense: speed and memory), `ticket`
(its size and loading), `data` (lines of preparation a second; batches from a million mapped pairs against what a training step
needs) or `startup` (from nothing to the first translated line). The sides of a ratio are run in turn, so that a busy machine slows them
all; times are medians.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax

from configs.common import SIZES
from launch import command
from launch.benchmarks import data, decode, select, startup, ticket, train
from one_layer.runs.settings import flatten
from one_layer.training.results import commit

BENCHMARKS = {"select": select, "train": train, "decode": decode, "ticket": ticket, "data": data, "startup": startup}
_ABOUT = ("benchmark", "size", "device", "jax", "commit")


def _print(result: dict[str, Any]) -> None:
    """A table of what was measured once, and one of every list of rows."""
    measured = flatten({name: value for name, value in result.items() if name not in _ABOUT})
    lists = {name: value for name, value in measured.items() if isinstance(value, list) and isinstance(value[0], dict)}
    once = {name: value for name, value in measured.items() if name not in lists}
    for rows in ([once] if once else [], *lists.values()):
        for cells in [list(rows[0]), *(map(_cell, row.values()) for row in rows)] if rows else []:
            print("  ".join(f"{cell:>{max(14, len(name))}}" for name, cell in zip(rows[0], cells, strict=True)))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--size", choices=SIZES, default="small", help="the model's, as in configs/common.py")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--out", type=Path, help="the file that the result is appended to, as a line of JSON")
    arguments = parser.parse_args()
    about = {
        "benchmark": arguments.name,
        "size": arguments.size,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "commit": commit(),
    }
    result = {**about, **BENCHMARKS[arguments.name].measure(arguments.size, arguments.quick)}
    _print(result)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    logging.getLogger("jax").setLevel(logging.WARNING)
    command.run(main)
