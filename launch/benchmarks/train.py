"""Compares a masked training step with a dense one, and measures the memory of the masked step."""

from __future__ import annotations

from typing import Any

from launch.benchmarks.workloads import LENGTH, PAIRS, Training, in_turn, model_of, random_batch
from one_layer.training.results import peak_memory_bytes


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds of one update on 32 pairs of 24+24 tokens: one-layer masked at keep 0.5, and dense; float32, no dropout."""
    batch = random_batch()
    masked = Training(model_of("one_layer", size), batch)
    masked()
    peak = peak_memory_bytes()  # before the dense model allocates memory
    sides = {"masked_seconds": masked, "dense_seconds": Training(model_of("dense", size), batch)}
    seconds = in_turn(sides, 2 if quick else 7)
    ratio = seconds["masked_seconds"] / seconds["dense_seconds"]
    return {"pairs": PAIRS, "tokens": 2 * PAIRS * LENGTH, **seconds, "ratio": ratio, "peak_bytes": peak}
