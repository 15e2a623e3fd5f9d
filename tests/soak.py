"""Trains, evaluates and translates in a loop in one process, and records memory, descriptors, threads and compiled programs.

    python -m tests.soak --minutes=120

A round is a whole toy run in a new folder, an evaluation of its best checkpoint, and translations by it and by its ticket. The table
has one row for each round. At the end it says whether each figure stayed flat: the mean of the last quarter of the rounds against the
mean of the second quarter (the first one still fills caches).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax

import one_layer
from one_layer.runs.evaluate import evaluate
from one_layer.runs.restore import restore_run
from one_layer.training.train import train
from tests import tiny

_GROWTH = {
    "MB": 1.05,
    "descriptors": 1.0,
    "threads": 1.0,
    "programs": 1.0,
    "arrays": 1.0,
}  # the most that still counts as flat
_LINES = ["der hund schläft .", "", "wen besucht sie jetzt ?"]


def one_round(folder: Path) -> None:
    """Trains, evaluates and translates once."""
    train(tiny.run(), folder, [])
    model = restore_run(folder)
    evaluate(model, "test", None)
    assert len(model.translate(_LINES)) == len(_LINES)
    for packed in (False, True):
        assert len(one_layer.load(folder / "ticket.safetensors", packed=packed).translate(_LINES)) == len(_LINES)


def figures() -> dict[str, float]:
    """What this process holds now: resident megabytes, open descriptors, threads, compiled programs and arrays."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "MB": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "python_threads": threading.active_count(),
        "programs": len(jax.devices()[0].client.live_executables()),
        "arrays": len(jax.live_arrays()),
    }


def soak(minutes: float) -> list[dict[str, float]]:
    """Rounds until `minutes` are over, with the figures after each; prints them as they come."""
    rows: list[dict[str, float]] = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end or len(rows) < 4:
        with tempfile.TemporaryDirectory() as folder:
            one_round(Path(folder) / "run")
        rows.append(figures())
        if len(rows) == 1:
            print("round", *(f"{name:>14}" for name in rows[0]), sep="  ", flush=True)
        print(f"{len(rows):5}", *(f"{value:14.0f}" for value in rows[-1].values()), sep="  ", flush=True)
    return rows


def verdicts(rows: list[dict[str, float]]) -> dict[str, tuple[float, float, bool]]:
    """For each figure: the means of the second and of the last quarter of the rounds, and whether it stayed flat."""
    quarter = len(rows) // 4
    found = {}
    for name, growth in _GROWTH.items():
        early, late = (
            sum(row[name] for row in part) / quarter for part in (rows[quarter : 2 * quarter], rows[-quarter:])
        )
        found[name] = early, late, late <= growth * early + 0.5
    return found


def main() -> int:
    """Runs the command line. Returns 1 if a figure grew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=120)
    rows = soak(parser.parse_args().minutes)
    for name, (early, late, flat) in verdicts(rows).items():
        print(f"{name}: {early:.1f} in the second quarter, {late:.1f} in the last: {'flat' if flat else 'GREW'}")
    return not all(flat for *_, flat in verdicts(rows).values())


if __name__ == "__main__":
    sys.exit(main())
