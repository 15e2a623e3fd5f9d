"""Measures batches from a million memory-mapped pairs against what training needs."""

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from launch.benchmarks.workloads import IWSLT14_VOCABULARIES, PAIRS, Training, in_turn, model_of, random_batch
from one_layer.data.batches import TrainingBatches
from one_layer.data.special_tokens import EOS
from one_layer.data.tokens import TokenStore


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Compares batches of 4,096 tokens with a masked update.

    The batches come from a million pairs (with `quick`: 50,000) of about 24+24 tokens in memory-mapped files. `share` is the time to
    batch the pairs of one update, divided by the time of the update. `bytes` has two parts: processes share `files`, and `private`
    is what this process additionally needs to open the files and make every batch of an epoch (only measured under Linux).
    """
    pairs = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "source", Path(folder) / "target"
        for seed, path in enumerate(paths):
            _sentences(pairs, seed).save(path, np.uint16)
        before, start = _private_bytes(), time.perf_counter()
        stores = [TokenStore.open(path) for path in paths]
        opened = time.perf_counter()
        batches = TrainingBatches(*stores, max_tokens=4096)
        batches[0]
        ready = time.perf_counter()
        for number in range(batches.batches_per_epoch):
            batches[number]
        private = _private_bytes() - before
        numbers, some = itertools.count(batches.batches_per_epoch), batches.batches_per_epoch // 10
        update = Training(model_of("one_layer", size), random_batch())
        sides: dict[str, Callable[[], Any]] = {
            "batching": lambda: [batches[next(numbers)] for _ in range(some)],
            "update": update,
        }
        seconds = in_turn(sides, 2 if quick else 7)
        files = sum(path.stat().st_size for path in Path(folder).iterdir())
    rate = some * pairs / batches.batches_per_epoch / seconds["batching"]
    need = PAIRS / seconds["update"]
    return {
        "pairs": pairs,
        "open_seconds": opened - start,
        "first_batch_seconds": ready - opened,
        "pairs_per_second": rate,
        "needed_per_second": need,
        "share": need / rate,
        "bytes": {"files": files, "private": private},
    }


def _sentences(count: int, seed: int) -> TokenStore:
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(3.0, 0.6, count).astype(np.int64), 2, 175)
    tokens = random.integers(4, min(IWSLT14_VOCABULARIES), int(lengths.sum()), np.uint16)
    starts = np.cumsum(lengths) - lengths
    tokens[starts + lengths - 1] = EOS
    return TokenStore(tokens, starts, lengths)


def _private_bytes() -> int:
    """Returns the resident bytes of this process without mapped files, or 0 on systems other than Linux."""
    try:
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
