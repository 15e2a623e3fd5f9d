"""Trains a tiny model for a few updates on several meshes of 8 CPU devices, and prints what it found as JSON.

A process of its own, because a process has one number of devices: it needs JAX_NUM_CPU_DEVICES=8.
"""

import json
import re
import sys
from collections import Counter
from typing import Any

import jax
import numpy as np

from one_layer.data.batches import TrainingBatches
from one_layer.models import ModelConfig, initialize
from one_layer.models.sharding import Devices, fetch
from one_layer.models.trained import TrainedParts
from one_layer.runs.settings import OptimConfig
from one_layer.tasks import TASKS
from one_layer.tasks.model import prepared
from one_layer.tasks.translation.generate import translated
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.training.frozen_masks import with_frozen_masks
from one_layer.training.optimizer import optimizer, pace
from one_layer.training.step import train_step

UPDATES, WIDTH = 4, 256
MODEL = ModelConfig(
    source_vocab=101, target_vocab=103, d_model=WIDTH, ffn=WIDTH, heads=4, encoder_layers=2, decoder_layers=2
)
MODELS = {
    "one_layer": MODEL.replace(weights="one_layer"),
    "signs": MODEL.replace(
        weights="one_layer", selection="signed_threshold", init_scheme="signed_constant", freeze="encoder"
    ),
    "soft": MODEL.replace(weights="one_layer", selection="sign", keep=1.0),
    "dense": MODEL.replace(weights="dense", dropout=0.1),
}
MESHES = {"one device": None, "data": (8, 1), "mixed": (4, 2)}
CASES = [
    (model, mesh) for model in MODELS for mesh in MESHES if model == "one_layer" or mesh in ("one device", "mixed")
]


def devices_of(mesh: tuple[int, int] | None) -> Devices:
    return Devices.holding(()) if mesh is None else Devices.arranged(*mesh)


def texts() -> list[np.ndarray]:
    """Sentences of 3 to 11 random tokens and eos."""
    random = np.random.default_rng(0)
    return [np.append(random.integers(4, 100, random.integers(3, 12)), 2).astype(np.int32) for _ in range(60)]


def transfers(text: str) -> dict[str, int]:
    """How often a compiled program gathers an array of each type and shape."""
    gathers = re.findall(r"= (\w+\[[\d,]*\])\S* all-gather(?:-start)?\(", text)
    return dict(Counter(gathers))


def case(name: str, mesh: str) -> dict[str, Any]:
    """Trains the model on the mesh; then selects, scores and translates with it there."""
    config, devices = MODELS[name], devices_of(MESHES[mesh])
    optim = OptimConfig(lr=1e-2, warmup=1, clip=1.0)
    adam, rates = optimizer(optim), pace(optim, 100)
    fixed = initialize(config, 1, devices)
    params = fixed.pop("params")
    fixed = with_frozen_masks(config, params, fixed, devices)
    parts = TrainedParts.of(config)
    moments = devices.initial_moments(lambda params: adam.init(parts.pick(params)), params)
    softness = 10.0 if name == "soft" else 0.0
    step = train_step(TASKS["translation"], config, adam, 0.1, 1, devices=devices, softness=softness)
    # 60 pairs in two micro-batches of 7 rows, which 8 devices do not divide.
    batches = TrainingBatches(texts(), texts(), max_tokens=14 * 12, accumulate=2, buckets=1, seed=1)
    batches = batches.shared(*devices.shares())
    losses, norms = [], []
    for number in range(UPDATES):
        batch = devices.batch(batches[number])
        if number == 0 and devices.many:
            step = step.lower(params, moments, fixed, batch, number, rates).compile()
        params, moments, sums = step(params, moments, fixed, batch, number, rates)
        losses.append(float(sums["loss"] / sums["targets"]))
        norms.append(float(sums["norm"]))
    found: dict[str, Any] = {"losses": losses, "norms": norms}
    if devices.many:
        found |= {"gathers": transfers(step.as_text()), "parts": _parts(params, moments)}
    variables = prepared(config, {"params": params, **fixed})
    products = {
        "/".join(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(variables)
    }
    found["kept"] = {path: int(np.count_nonzero(fetch(leaf))) for path, leaf in products.items() if "kernel" in path}
    if name not in ("signs", "soft"):
        settings = SearchSettings(beam=2, max_length_a=0.0, max_length_b=10)
        found["translations"] = [each.tolist() for each in translated(config, settings, variables, texts()[:11])]
    return found


def _parts(params: Any, moments: Any) -> dict[str, float]:
    """The largest share of a matrix of scores (or weights), and of its moments, that one device holds. Means of rows are no matrix."""
    trees = {"params": params, "moments": moments}
    matrices = {
        name: [leaf for leaf in jax.tree.leaves(tree) if leaf.ndim > 2 and min(leaf.shape[-2:]) > 1]
        for name, tree in trees.items()
    }
    return {
        name: max(leaf.addressable_shards[0].data.size / leaf.size for leaf in leaves)
        for name, leaves in matrices.items()
    }


if __name__ == "__main__":
    json.dump({f"{name} {mesh}": case(name, mesh) for name, mesh in CASES}, sys.stdout)
