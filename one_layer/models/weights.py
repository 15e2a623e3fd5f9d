"""Where every variable of a model comes from: a recipe a matrix, all from one seed.

Roles are written out here, next to the path of the module that uses the matrix: renaming a module changes the path and never
the role, so never a weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import unflatten_dict

from one_layer.config import PAD, ModelConfig
from one_layer.initializers import Recipe

Path = tuple[str, ...]
Variables = dict[str, Any]


def initialize(config: ModelConfig, seed: int) -> Variables:
    """The variables of a model before training: `params` (scores, or dense weights) and `random`, float32 arrays.

    Everything is a pure function of `seed` and the roles. Scores are U(±1/√fan_in), biases 0, the scales of affine norms 1.
    """
    params: dict[Path, np.ndarray] = {}
    for path, recipe in recipes(config).items():
        kind = _kind(config, path)
        if kind == "trained":
            params[(*path, "kernel")] = recipe.draw(seed)
        elif kind == "masked" and config.keep < 1.0:
            params[(*path, "scores")] = _scores(config, path, recipe).draw(seed)
    params.update(_vectors(config))
    trained = jax.tree.map(jnp.asarray, unflatten_dict(params))
    return {"params": trained, "random": random_collection(config, seed)}


def random_collection(config: ModelConfig, seed: int) -> Variables:
    """The collection `random`: what is drawn from the seed and never trained, so never stored in a checkpoint."""
    drawn = {
        (*path, "kernel"): jnp.asarray(recipe.draw(seed))
        for path, recipe in recipes(config).items()
        if _kind(config, path) != "trained"
    }
    return unflatten_dict(drawn)


def recipes(config: ModelConfig) -> dict[Path, Recipe]:
    """The recipe of every matrix of the model, by the path of its module.

    Preset `paper` draws all by `init_scheme`, √(1/keep) wider if `scale_by_keep` (paper A, section 4). `reference` is what the
    paper's code does: q, k, v Xavier uniform with gain 1/√2, the attention's output Xavier uniform, whatever the scheme; the rest
    without the keep scaling; embeddings with a zero row at pad. Dense models start as fairseq's do.
    """
    found: dict[Path, Recipe] = {}
    for path, role, shape in _projections(config):
        scheme, scale = _scheme(config, path)
        dense_or_own = config.weights != "one_layer"
        layers = _depth(config, path) if dense_or_own else None
        found[path] = Recipe(role, shape, scheme, scale, layers=layers)
    for path, role, rows in _embeddings(config):
        shape = (rows, config.d_model)
        if config.embedding == "trained" or not config.masked:
            found[path] = Recipe(role, shape, "normal", zero_row=PAD)
        else:
            keep = config.keep if config.embedding == "masked" else 1.0
            paper = config.init_preset == "paper"
            scale = math.sqrt(1 / keep) if paper and config.scale_by_keep else 1.0
            zero_row = None if paper else PAD
            found[path] = Recipe(role, shape, config.init_scheme, scale, fan_in=config.d_model, zero_row=zero_row)
    return found


def _projections(config: ModelConfig) -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Path, role and shape of the projections of one encoder layer and one decoder layer."""
    d, ffn = config.d_model, config.ffn
    for stack, attentions in (("encoder", ("self_attention",)), ("decoder", ("self_attention", "cross_attention"))):
        for attention in attentions:
            for name in ("query", "key", "value", "output"):
                yield (stack, "layers", attention, name), f"{stack}/{attention}/{name}", (d, d)
        yield (stack, "layers", "ffn_in"), f"{stack}/ffn/in", (d, ffn)
        yield (stack, "layers", "ffn_out"), f"{stack}/ffn/out", (ffn, d)


def _embeddings(config: ModelConfig) -> Iterator[tuple[Path, str, int]]:
    if config.shared_embedding:
        yield ("shared_embedding",), "shared/embedding", config.target_vocab
    else:
        yield ("source_embedding",), "encoder/embedding", config.source_vocab
        yield ("target_embedding",), "decoder/embedding", config.target_vocab


def _kind(config: ModelConfig, path: Path) -> str:
    """Whether the matrix at `path` is `trained`, `masked` or `random`."""
    if path[-1].endswith("embedding"):
        return {"masked": "masked", "frozen": "random", "trained": "trained"}[str(config.embedding)]
    return "masked" if config.masked else "trained"


def _depth(config: ModelConfig, path: Path) -> int:
    return config.encoder_layers if path[0] == "encoder" else config.decoder_layers


def _scheme(config: ModelConfig, path: Path) -> tuple[str, float]:
    """Scheme and scale of a projection."""
    if config.init_preset == "reference" or not config.masked:
        if path[-1] in ("query", "key", "value"):
            return "xavier_uniform", math.sqrt(0.5)
        if path[-1] == "output" or not config.masked:
            return "xavier_uniform", 1.0
        return config.init_scheme, 1.0
    return config.init_scheme, math.sqrt(1 / config.keep) if config.scale_by_keep else 1.0


def _scores(config: ModelConfig, path: Path, recipe: Recipe) -> Recipe:
    """U(±1/√fan_in), Kaiming uniform with a = √5, that is 1/√6 of its usual bound; a layer's scores are its own."""
    layers = None if path[-1].endswith("embedding") else _depth(config, path)
    return Recipe(
        f"{recipe.role}/scores", recipe.shape, "kaiming_uniform", math.sqrt(1 / 6), fan_in=recipe.fan_in, layers=layers
    )


def _vectors(config: ModelConfig) -> dict[Path, np.ndarray]:
    """Biases and the scales and shifts of affine norms, with the layer axis first."""
    found: dict[Path, np.ndarray] = {}
    if config.bias:
        for path, _, shape in _projections(config):
            found[(*path, "bias")] = np.zeros((_depth(config, path), shape[1]), np.float32)
    if config.norm == "affine":
        norms = {
            (*path[:2], f"{path[2].removesuffix('_out')}_norm")
            for path, _, _ in _projections(config)
            if path[2] != "ffn_in"
        }
        for path in norms:
            shape = (_depth(config, path), config.d_model)
            found[(*path, "layer_norm", "scale")] = np.ones(shape, np.float32)
            found[(*path, "layer_norm", "bias")] = np.zeros(shape, np.float32)
    return found
