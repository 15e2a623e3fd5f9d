"""Compares a masked training step with a dense one, and measures the memory of the masked step."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from configs.common import SIZES
from launch.benchmarks.common import IWSLT14_VOCABULARIES, LENGTH, PAIRS, Training, in_turn, model_of, random_batch
from one_layer.training.results import peak_memory_bytes


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds of one update on 32 pairs of 24+24 tokens: one-layer masked at keep 0.5, and dense; float32, no dropout."""
    batch = random_batch()
    masked = Training(model_of("one_layer", size), batch)
    masked()
    peak = peak_memory_bytes()  # before the dense model allocates memory
    sides: dict[str, Callable[[], Any]] = {
        "masked_seconds": masked,
        "dense_seconds": Training(model_of("dense", size), batch),
        **_peers(size, batch),
    }
    seconds = in_turn(sides, 2 if quick else 7)
    return {
        "pairs": PAIRS,
        "tokens": 2 * PAIRS * LENGTH,
        **seconds,
        "ratio": seconds["masked_seconds"] / seconds["dense_seconds"],
        "peak_bytes": peak,
    }


def _peers(size: str, batch: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """Returns the same steps in PyTorch, with masks by sorting, if PyTorch is installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    from launch.torch_peer import Training

    return {
        f"torch_{name}_seconds": Training(name == "masked", SIZES[size], IWSLT14_VOCABULARIES, batch)
        for name in ("masked", "dense")
    }
