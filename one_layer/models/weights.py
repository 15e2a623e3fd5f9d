"""How every variable of a model is made: one recipe per matrix, all from one seed.

A role names a matrix in its recipe. Roles are written out here, next to the path of the module that uses the matrix: renaming a
module changes its path but not its role, and so no weight changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax.traverse_util import unflatten_dict
from jaxtyping import Float32

from one_layer.initializers import Recipe
from one_layer.models.config import ModelConfig
from one_layer.special_tokens import PAD

# The attentions of one layer of each stack, by the names of their modules.
_ATTENTIONS = {"encoder": ("self_attention",), "decoder": ("self_attention", "cross_attention")}
_NOISE = 1e-4  # standard deviation of `constant_noisy` scores, as in the reference

Path = tuple[str, ...]
Variables = dict[str, Any]


def initialize(config: ModelConfig, seed: int) -> Variables:
    """The variables of a model before training, float32 arrays: `params` (scores, or dense weights), `random`, and `frozen`.

    `params` and `random` are pure functions of `seed` and the roles. Biases are 0, and the scales of affine norms are 1. `frozen`
    exists only if some fixed arrays do not come from the seed: the scale 1 and shift 0 of frozen norms, and the tables of
    `embedding_path`, which are NaN until `pretrained_tables` replaces them.
    """
    made = unflatten_dict({path: jnp.asarray(part.draw(seed)) for path, part in _parts(config).items()})
    return {"params": {}, "random": {}, **made}


def random_collection(config: ModelConfig, seed: int) -> Variables:
    """The collection `random`: weights that are drawn from the seed and never trained, so checkpoints do not store them."""
    parts = {path[1:]: part for path, part in _parts(config).items() if path[0] == "random"}
    return unflatten_dict({path: jnp.asarray(part.draw(seed)) for path, part in parts.items()})


def pretrained_tables(config: ModelConfig, seed: int, rows: dict[str, Float32[np.ndarray, "vocab d"]]) -> Variables:
    """The tables of `embedding_path`, for the collection `frozen`. `rows` has them by table name, with NaN rows for tokens not found.

    A row that was not found is drawn, as it would be without the path. Under masks with `scale_by_keep`, the rows that were found are
    multiplied by √(1/keep), as drawn rows are (the reference multiplies by √(1/(1-keep)), which is the same only at keep 0.5). Positions,
    under `position_embedding`, are not changed.
    """
    found = {}
    for (name, *_), recipe in recipes(config).items():
        if name in rows:
            scale = np.float32(recipe.scale)
            found[name] = {"kernel": np.where(np.isnan(rows[name]), recipe.draw(seed), rows[name] * scale)}
    if "position_embedding" in rows:
        found["position_embedding"] = {"kernel": rows["position_embedding"]}
    return found


def shapes(config: ModelConfig) -> dict[Path, tuple[int, ...]]:
    """The shape of every variable that `initialize` makes, by collection and path. No values are drawn."""
    return {path: part.whole_shape for path, part in _parts(config).items()}


@dataclass(frozen=True)
class _Constant:
    """Takes the place of a recipe: an array with one value, plus the noise that a recipe draws, if there is one."""

    whole_shape: tuple[int, ...]
    value: float
    noise: Recipe | None = None

    def draw(self, seed: int) -> np.ndarray:
        """The array; only the noise depends on `seed`."""
        constant = np.full(self.whole_shape, self.value, np.float32)
        return constant + self.noise.draw(seed) if self.noise else constant


def _parts(config: ModelConfig) -> dict[Path, Recipe | _Constant]:
    """How every variable is made, by collection and path."""
    parts: dict[Path, Recipe | _Constant] = {}
    for path, recipe in recipes(config).items():
        kind, elsewhere = _kind(config, path), bool(config.embedding_path) and path[-1].endswith("embedding")
        if kind == "trained":
            parts["params", *path, "kernel"] = recipe
        elif elsewhere:
            parts["frozen", *path, "kernel"] = _Constant(recipe.shape, math.nan)
        else:
            parts["random", *path, "kernel"] = recipe
        if kind == "masked" and not config.supermask.keeps_all:
            parts["params", *path, "scores"] = _scores(config, path, recipe)
    if config.positions == "frozen":
        shape = (config.max_positions + PAD + 1, config.d_model)
        parts["frozen", "position_embedding", "kernel"] = _Constant(shape, math.nan)
    parts.update(_biases(config))
    parts.update(_norms(config))
    return parts


def recipes(config: ModelConfig) -> dict[Path, Recipe]:
    """The recipe of every matrix of the model, by the path of its module.

    Preset `paper` draws all matrices with `init_scheme`, and scales them by √(1/keep) if `scale_by_keep` (paper A, section 4). Preset
    `reference` does what the paper's code does. Whatever the scheme, q, k and v are Xavier uniform with gain 1/√2, and the output
    projection of attention is Xavier uniform. The other matrices are not scaled by keep, and embeddings have a zero row at pad. Dense
    models are initialised as in fairseq.
    """
    found: dict[Path, Recipe] = {}
    for path, role, shape in _heads(config):
        found[path] = Recipe(role, shape, "xavier_uniform")
    for path, role, shape in _projections(config):
        scheme, scale = _scheme(config, path)
        layers = None if config.sharing == "weights" else _depth(config, path)
        found[path] = Recipe(role, shape, scheme, scale, layers=layers)
    for table in config.network_family.tables(config):
        path, role, shape = (table.name,), table.role, (table.rows, config.d_model)
        if config.embedding == "trained" or not config.masked:
            found[path] = Recipe(role, shape, "normal", zero_row=PAD)
        else:
            scale = _keep_scale(config) if config.embedding == "masked" else 1.0
            zero_row = PAD if config.zero_pad_row else None
            found[path] = Recipe(role, shape, config.init_scheme, scale, fan_in=config.d_model, zero_row=zero_row)
    return found


def roles(config: ModelConfig) -> dict[Path, str]:
    """The role of every module that has variables, by its path. A role does not change when a module is renamed."""
    found = {path: recipe.role for path, recipe in recipes(config).items()}
    found |= {path: f"{path[0]}/{path[2].removesuffix('_norm')}/norm" for path in _norm_paths(config)}
    return found | {
        ("embedding_norm", "layer_norm"): "encoder/embedding/norm",
        ("position_embedding",): "encoder/position",
    }


def _projections(config: ModelConfig) -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Path, role and shape of the projections of one layer of each stack."""
    d, ffn = config.d_model, config.ffn
    for stack in config.network_family.stacks:
        for attention in _ATTENTIONS[stack]:
            for name in ("query", "key", "value", "output"):
                yield (stack, "layers", attention, name), f"{stack}/{attention}/{name}", (d, d)
        yield (stack, "layers", "ffn_in"), f"{stack}/ffn/in", (d, ffn)
        yield (stack, "layers", "ffn_out"), f"{stack}/ffn/out", (ffn, d)


def _heads(config: ModelConfig) -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Path, role and shape of the matrices of the heads."""
    for head in config.network_family.heads(config):
        yield (head.name,), head.role, head.shape


def _kind(config: ModelConfig, path: Path) -> str:
    """Whether the matrix at `path` is `trained`, `masked` or `fixed`."""
    if path[-1].endswith("embedding"):
        return {"masked": "masked", "frozen": "fixed", "trained": "trained"}[str(config.embedding)]
    in_stack = path[0] in config.network_family.stacks
    return config.layer.kind if in_stack else "trained"


def _depth(config: ModelConfig, path: Path) -> int:
    return config.stack(path[0]).length


def _scheme(config: ModelConfig, path: Path) -> tuple[str, float]:
    """Scheme and scale of a projection."""
    gain = float(config.init_qk_gain or 1.0) if path[-1] in ("query", "key") and config.masked else 1.0
    if config.init_attention == "xavier" or not config.masked:
        if path[-1] in ("query", "key", "value"):
            return "xavier_uniform", math.sqrt(0.5) * gain
        if path[-1] == "output" or not config.masked:
            return "xavier_uniform", 1.0
    return config.init_scheme, _keep_scale(config) * gain


def _keep_scale(config: ModelConfig) -> float:
    return math.sqrt(1 / config.keep) if config.scale_by_keep else 1.0


def _scores(config: ModelConfig, path: Path, recipe: Recipe) -> Recipe | _Constant:
    """How the scores of the matrix at `path` are made, by `score_init`; every layer has its own unless the layers share one mask.

    U(±1/√fan_in) is Kaiming uniform with a = √5, which has 1/√6 of the usual bound.
    """
    layers = None if path[-1].endswith("embedding") or config.sharing == "masks" else _depth(config, path)
    role = f"{recipe.role}/scores"
    if config.score_init == "uniform":
        scale = math.sqrt(1 / 6)
        return Recipe(role, recipe.shape, "kaiming_uniform", scale, fan_in=recipe.fan_in, layers=layers)
    noise = Recipe(role, recipe.shape, "normal", _NOISE * math.sqrt(recipe.shape[-1]), layers=layers)
    return _Constant(noise.whole_shape, config.score_constant, noise if config.score_init == "constant_noisy" else None)


def _biases(config: ModelConfig) -> dict[Path, _Constant]:
    """The biases of heads and projections, all 0. In stacks the layer axis is first, unless the layers share them."""
    found = {("params", *path, "bias"): _Constant(shape[1:], 0.0) for path, _, shape in _heads(config)}
    for path, _, shape in _projections(config) if config.bias else ():
        found["params", *path, "bias"] = _Constant(_per_layer(config, path, shape[1], config.share_bias), 0.0)
    return found


def _norms(config: ModelConfig) -> dict[Path, _Constant]:
    """The scales (1) and shifts (0) of the norms. The layer axis is first, unless the layers share trained ones."""
    found: dict[Path, _Constant] = {}
    if config.norm == "plain":
        return found
    trained = config.norm == "affine"
    if config.embedding_norm:
        for leaf, value in (("scale", 1.0), ("bias", 0.0)):
            collection = "params" if trained else "frozen"
            found[collection, "embedding_norm", "layer_norm", leaf] = _Constant((config.d_model,), value)
    for path in _norm_paths(config):
        norm = ("params" if trained else "frozen", *path)
        scale = _per_layer(config, path, config.d_model, trained and bool(config.share_norm_scale))
        shift = _per_layer(config, path, config.d_model, trained and config.share_bias)
        found[(*norm, "scale")] = _Constant(scale, 1.0)
        found[(*norm, "bias")] = _Constant(shift, 0.0)
    return found


def _norm_paths(config: ModelConfig) -> Iterator[Path]:
    """The modules of the norms in one layer of each stack: one after every attention, one after the feed-forward network."""
    for stack in config.network_family.stacks:
        for block in (*_ATTENTIONS[stack], "ffn"):
            yield stack, "layers", f"{block}_norm", "layer_norm"


def _per_layer(config: ModelConfig, path: Path, features: int, shared: bool) -> tuple[int, ...]:
    return (features,) if shared else (_depth(config, path), features)
