"""Updates in bfloat16 beside float32: a one-layer model of the size, and the recipes of configs/multi30k.py for a CPU."""

from __future__ import annotations

from typing import Any

from configs import multi30k
from launch.benchmarks.workloads import LENGTH, Training, in_turn, model_of, random_batch
from one_layer.models import ModelConfig
from one_layer.runs.settings import resolve
from one_layer.training.precision import has_bfloat16

_RECIPES = ("best", "best_wide")
_VOCABULARY = 9_713  # the shared one of Multi30k


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds of an update with masks at keep 0.5, on random sentences of 24 tokens; the recipes have their dropout."""
    models: dict[str, tuple[ModelConfig, dict[str, Any]]] = {size: (model_of("one_layer", size), random_batch())}
    for recipe in _RECIPES:
        config = multi30k.get_config(recipe)
        config.data.directory = "."  # nothing is read from it
        run = resolve(config.to_dict())
        batch = random_batch(_VOCABULARY, run.data.max_tokens // LENGTH)
        models[recipe] = run.model_config(_VOCABULARY, _VOCABULARY), batch
    rows = []
    for name, (model, batch) in models.items():
        sides = {f"{dtype}_seconds": Training(model.replace(dtype=dtype), batch) for dtype in ("float32", "bfloat16")}
        seconds = in_turn(sides, 2 if quick else 15)
        pairs = batch["source"].shape[1]
        row = {
            "model": name,
            "pairs": pairs,
            **seconds,
            "ratio": seconds["bfloat16_seconds"] / seconds["float32_seconds"],
        }
        rows.append(row)
    return {"instructions": has_bfloat16(), "updates": rows}
