"""Measures training steps side by side: masks over one random layer and over many, and dense; prints a table and appends JSON lines.

    python launch/benchmark.py [--size=small] [--tokens=768] [--dtype=float32] [--rounds=7] [--out=FILE]

A step is one update on random sentences of 24+24 tokens at keep 0.5, without dropout. The kinds of weights take turns, so that a busy
machine slows all of them equally. Times are medians. `of_dense` is the time divided by that of a dense step. `utilisation` is the share of
the device's peak in bfloat16, where that is known. `peak_bytes` is the most memory of the process so far.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import jaxlib
import numpy as np

from configs.common import SIZES
from one_layer.cli import command
from one_layer.models import ModelConfig, initialize
from one_layer.models.flops import update_flops
from one_layer.runs.commit import commit
from one_layer.system.heap import keep_freed_memory
from one_layer.tasks import TASKS
from one_layer.training.optimizer import OptimConfig, optimizer
from one_layer.training.results import peak_memory_bytes
from one_layer.training.step import train_step

WEIGHTS = ("one_layer", "multi_layer", "dense")
VOCABULARIES = (8848, 6632)  # of IWSLT14
LENGTH = 24  # tokens of a sentence
# Dense bfloat16 products of NVIDIA's data sheets, in 10^12 operations a second.
_PEAKS = {"H100": 989.0, "H200": 989.0, "A100": 312.0}


class Training:
    """A model in training. Each call is one update."""

    def __init__(self, config: ModelConfig, batch: dict[str, np.ndarray]) -> None:
        adam = optimizer(OptimConfig(), 1)
        variables = initialize(config, 0)
        params = variables.pop("params")
        self._state = params, adam.init(params)
        self._fixed, self._batch, self._number = variables, batch, 0
        self._step = train_step(TASKS["translation"], config, adam, 0.1, 0)

    def __call__(self) -> None:
        *state, sums = self._step(*self._state, self._fixed, self._batch, self._number)
        self._state, self._number = (state[0], state[1]), self._number + 1
        jax.block_until_ready(sums)


def measure(size: str, tokens: int, dtype: str, rounds: int) -> list[dict[str, Any]]:
    """A row for each kind of weights, for updates of about so many target tokens. The first update compiles and is not counted."""
    d, ffn, heads, layers = SIZES[size]
    ids = np.random.default_rng(0).integers(4, min(VOCABULARIES), (3, 1, tokens // LENGTH, LENGTH)).astype(np.int32)
    batch = dict(zip(("source", "target_in", "target"), ids, strict=True))
    sides, peaks = {}, {}
    times: dict[str, list[float]] = {weights: [] for weights in WEIGHTS}
    for weights in WEIGHTS:
        config = ModelConfig(*VOCABULARIES, d, ffn, heads, layers, layers, weights=weights, dtype=dtype)
        sides[weights] = config, Training(config, batch)
        sides[weights][1]()
        peaks[weights] = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use") or peak_memory_bytes()
    for _ in range(rounds):
        for weights, (_, step) in sides.items():
            start = time.perf_counter()
            step()
            times[weights].append(time.perf_counter() - start)
    seconds = {weights: statistics.median(each) for weights, each in times.items()}
    kind = jax.devices()[0].device_kind
    peak = next((peak for name, peak in _PEAKS.items() if name in kind), None)
    rows = []
    for weights, (config, _) in sides.items():
        teraflops = update_flops(config, tokens // LENGTH, LENGTH, LENGTH) / seconds[weights] / 1e12
        row = {"weights": weights, "seconds": seconds[weights], "of_dense": seconds[weights] / seconds["dense"]}
        row |= {"tokens_per_second": tokens / seconds[weights], "teraflops": teraflops}
        rows.append(row | {"utilisation": teraflops / peak if peak else None, "peak_bytes": peaks[weights]})
    return rows


def main() -> None:
    """Runs the command line."""
    parser = command.parser_of(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model, as in configs/common.py")
    parser.add_argument("--tokens", type=command.positive, default=768, help="target tokens of an update")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=command.positive, default=7)
    parser.add_argument("--out", type=Path, help="file to which the result is appended, as one line of JSON")
    given = parser.parse_args()
    keep_freed_memory()  # as training does
    rows = measure(given.size, given.tokens, given.dtype, given.rounds)
    for row in ({name: name for name in rows[0]}, *rows):
        cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row.values())
        print("  ".join(f"{cell:>17}" for cell in cells))
    if given.out:
        about = {"size": given.size, "tokens": given.tokens, "dtype": given.dtype, "commit": commit()}
        about |= {"device": jax.devices()[0].device_kind, "cpus": os.cpu_count(), "python": platform.python_version()}
        about |= {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "xla_flags": os.environ.get("XLA_FLAGS", "")}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**about, "steps": rows}) + "\n")


if __name__ == "__main__":
    logging.getLogger("jax").setLevel(logging.WARNING)
    command.run(main)
