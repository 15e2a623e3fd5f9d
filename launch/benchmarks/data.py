"""Lines of preparation a second, and batches from a million mapped pairs against what a training step needs."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from launch.benchmarks.common import IWSLT14_VOCABULARIES, PAIRS, Training, in_turn, random_batch
from launch.benchmarks.preparation import prepare
from one_layer.data.batches import TrainingBatches
from one_layer.data.tokens import TokenStore
from one_layer.special_tokens import EOS


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Batches of 4,096 tokens from a million pairs (quick: 50,000) of about 24+24, mapped from files, against a masked update.

    `share` is the time for the pairs of an update over that of the update. Of the bytes, `files` are shared by processes, and
    `private` is what opening them and making every batch of an epoch adds to this process besides (under Linux).
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
        update = Training("one_layer", size, random_batch())
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
        "preparation": prepare(200 if quick else 60_000),
    }


def _sentences(count: int, seed: int) -> TokenStore:
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(3.0, 0.6, count).astype(np.int64), 2, 175)
    tokens = random.integers(4, min(IWSLT14_VOCABULARIES), int(lengths.sum()), np.uint16)
    starts = np.cumsum(lengths) - lengths
    tokens[starts + lengths - 1] = EOS
    return TokenStore(tokens, starts, lengths)


def _private_bytes() -> int:
    """Resident in this process now, mapped files not counted; 0 where the system does not say so as Linux does."""
    try:
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
