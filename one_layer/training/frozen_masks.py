"""Masks that training does not change: they are selected once, before the first update, and not at every update again."""

from functools import partial
from typing import Any

import jax

from one_layer.layers.materializing import computing, materialize
from one_layer.layers.quantization import quantized
from one_layer.layers.trees import flatten_dict, unflatten_dict
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts

Tree = Any


def with_frozen_masks(config: ModelConfig, params: Tree, fixed: dict[str, Tree], devices: Devices) -> dict[str, Tree]:
    """`fixed` (the collections beside `params`) with W ⊙ M of all frozen masks in `materialized`, in the type of the computation.

    What is trained beside masks goes into these products before they are rounded, as everywhere else: then they stay in float32.
    Masks of a stack whose layers are frozen in part are not among them. Without frozen masks, `fixed` is returned as it is.
    """
    trained = TrainedParts.of(config).rows
    scores = {path: leaf for path, leaf in flatten_dict(params).items() if path[-1] == "scores" and path not in trained}
    if not scores:
        return fixed
    modules = {path[:-1] for path in scores}
    weights = {
        path: leaf
        for path, leaf in flatten_dict(fixed).items()
        if path[0] in ("random", "frozen") and path[1:-1] in modules
    }
    return {**fixed, "materialized": _products(unflatten_dict(scores), unflatten_dict(weights), config, devices)}


@partial(jax.jit, static_argnames=("config", "devices"))
def _products(scores: Tree, weights: Tree, config: ModelConfig, devices: Devices) -> Tree:
    seen = quantized({"params": scores, **weights}, config.precisions)
    variables = materialize(seen, config.supermask, devices.selecting(config.supermask))
    dtype = "float32" if config.beside else config.dtype
    return computing(devices.for_computing(variables), dtype)["materialized"]
