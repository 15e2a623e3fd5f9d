"""A head that is trained on layers with frozen masks: the update with products W ⊙ M that are held, made at each update, and dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import optax

from configs.common import SIZES
from launch.benchmarks.workloads import in_turn
from one_layer.models import ModelConfig, initialize
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.tasks import TASKS
from one_layer.training.frozen_masks import with_frozen_masks
from one_layer.training.step import train_step

_VOCABULARY, _TEXTS, _LENGTH = 8000, 8, 16


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures one update of a classifier's head on 8 texts of 16 tokens; float32, no dropout."""
    sides = {
        "held_seconds": _Head("one_layer", size, held=True),
        "selected_again_seconds": _Head("one_layer", size, held=False),
        "dense_seconds": _Head("dense", size, held=False),
    }
    seconds = in_turn({name: head.update for name, head in sides.items()}, 2 if quick else 25)
    return {
        "texts": _TEXTS,
        "tokens": _TEXTS * _LENGTH,
        **seconds,
        "ratio": seconds["held_seconds"] / seconds["dense_seconds"],
        "ratio_selected_again": seconds["selected_again_seconds"] / seconds["dense_seconds"],
    }


class _Head:
    def __init__(self, weights: str, size: str, held: bool) -> None:
        d, ffn, heads, layers = SIZES[size]
        model: dict[str, Any] = {"family": "classifier", "embedding": "trained", "train_only": "head"}
        config = ModelConfig(_VOCABULARY, 6, d, ffn, heads, layers, 0, weights=weights, **model)
        self._fixed = initialize(config, 1)
        self._params = self._fixed.pop("params")
        if held:
            self._fixed = with_frozen_masks(config, self._params, self._fixed, Devices.holding(()))
        adam = optax.adam(1e-3)
        self._moments = adam.init(TrainedParts.of(config).pick(self._params))
        self._step = train_step(TASKS["classification"], config, adam, 0.0, 1)
        dice = np.random.default_rng(0)
        texts = dice.integers(4, _VOCABULARY, (1, _TEXTS, _LENGTH)).astype(np.int32)
        self._batch = {"source": texts, "target": dice.integers(4, 6, (1, _TEXTS, 1))}

    def update(self) -> Any:
        self._params, self._moments, sums = self._step(self._params, self._moments, self._fixed, self._batch, 0)
        return sums
