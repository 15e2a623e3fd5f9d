"""How every variable of a model is made: one recipe per matrix, all from one seed.

A role names a matrix in its recipe. Roles are written out here, next to the path of the module that uses the matrix: renaming a
module changes its path but not its role, and so no weight changes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from one_layer.data.special_tokens import PAD
from one_layer.initializers import ORTHOGONAL, Recipe
from one_layer.layers.beside import ADAPTER_IN, ADAPTER_OUT, GAINS
from one_layer.layers.materializing import trained_leaf
from one_layer.layers.trees import Path, Shape, Variables, variables_of
from one_layer.models.config import ModelConfig
from one_layer.models.parts import Part, matrices, norms
from one_layer.models.sharding import Devices


def initialize(config: ModelConfig, seed: int, devices: Devices | None = None) -> Variables:
    """The variables of a model before training, float32 arrays: `params` (scores, or dense weights), `random`, and `frozen`.

    `params` and `random` are pure functions of `seed` and the roles. Biases are 0, and the scales of affine norms are 1. `frozen`
    exists only if some fixed arrays do not come from the seed: the scale 1 and shift 0 of frozen norms, and the tables of
    `embedding_path`, which are NaN until `pretrained_tables` replaces them. With `devices`, no device holds more than its part.
    """
    place = devices.place if devices else lambda path, array: jnp.asarray(array)
    return variables_of({path: place(path, part.draw(seed)) for path, part in _parts(config).items()})


def pretrained_tables(config: ModelConfig, seed: int, rows: dict[str, Float32[np.ndarray, "vocab d"]]) -> Variables:
    """The tables of `embedding_path`, for the collection `frozen`. `rows` has them by table name, with NaN rows for tokens not found.

    A row that was not found is drawn, as it would be without the path. Under masks, the rows that were found are multiplied by
    `_found_scale`, in preset `reference` the whole table. Positions, under `position_embedding`, are not changed.
    """
    found = {}
    for (name, *_), recipe in recipes(config).items():
        if name in rows:
            scale = np.float32(_found_scale(config))
            drawn = recipe.draw(seed) * (scale if config.reference else np.float32(1))
            found[name] = {"kernel": np.where(np.isnan(rows[name]), drawn, rows[name] * scale)}
    if "position_embedding" in rows:
        found["position_embedding"] = {"kernel": rows["position_embedding"]}
    return found


def shapes(config: ModelConfig) -> dict[Path, Shape]:
    """The shape of every variable that `initialize` makes, by collection and path. No values are drawn."""
    return {path: part.whole_shape for path, part in _parts(config).items()}


def abstract(config: ModelConfig) -> Variables:
    """The same as a tree: what `initialize` makes, with shapes in place of arrays."""
    return variables_of({path: jax.ShapeDtypeStruct(shape, jnp.float32) for path, shape in shapes(config).items()})


@dataclass(frozen=True)
class _Constant:
    """Takes the place of a recipe: an array with one value."""

    whole_shape: Shape
    value: float

    def draw(self, seed: int) -> np.ndarray:
        """The array, whatever the `seed`."""
        return np.full(self.whole_shape, self.value, np.float32)


@lru_cache(maxsize=64)  # a program is asked for the parts of one model many times
def _parts(config: ModelConfig) -> Mapping[Path, Recipe | _Constant]:
    """How every variable is made, by collection and path."""
    found: dict[Path, Recipe | _Constant] = {}
    for part in matrices(config):
        path, recipe, leaf = part.path, _recipe(config, part), trained_leaf(part.kind, config.supermask)
        if leaf == "kernel":
            found["params", *path, "kernel"] = recipe
        elif config.embedding_path and path[-1].endswith("embedding"):
            found["frozen", *path, "kernel"] = _Constant(part.shape, math.nan)
        elif part.kind != "tied":
            found["random", *path, "kernel"] = recipe
        if leaf == "scores":
            found["params", *path, "scores"] = _scores(config, part, recipe)
        layers = (part.group.count,) if part.group else ()
        if part.bias:
            found["params", *path, "bias"] = _Constant((*layers, part.shape[1]), 0.0)
        if part.main:
            found |= {("params", *path, name): made for name, made in _beside(config, part).items()}
    for norm in norms(config):
        collection = "frozen" if norm.kind == "frozen" else "params"
        if norm.kind not in ("plain", "rms_plain"):
            found[collection, *norm.path, "scale"] = _Constant((*norm.scale, norm.features), 1.0)
        if norm.kind in ("affine", "frozen"):
            found[collection, *norm.path, "bias"] = _Constant((*norm.shift, norm.features), 0.0)
    return found


def recipes(config: ModelConfig) -> dict[Path, Recipe]:
    """The recipe of every matrix of the model, by the path of its module.

    Preset `paper` draws all matrices with `init_scheme`, and scales them by √(1/keep) if `scale_by_keep` (paper A, section 4). Preset
    `reference` does what the paper's code does. Whatever the scheme, q, k and v are Xavier uniform with gain 1/√2, and the output
    projection of attention is Xavier uniform; `init_attention=xavier_constant` draws the same with one size. The other matrices are not
    scaled by keep, and embeddings have a zero row at pad. Dense models, and trained layers beside masked ones, are initialised as in
    fairseq. Matrices of reservoirs are orthogonal (arXiv 2012.15045, section 2).
    """
    return {part.path: _recipe(config, part) for part in matrices(config) if part.kind not in ("tied", "given")}


def roles(config: ModelConfig) -> dict[Path, str]:
    """The role of every module that has variables, by its path. A role does not change when a module is renamed."""
    return {part.path: part.role for part in matrices(config)} | {norm.path: norm.role for norm in norms(config)}


def _recipe(config: ModelConfig, part: Part) -> Recipe:
    if part.group:
        layers = None if part.group.one_weight else part.group.count
        return Recipe(part.role, part.shape, *_scheme(config, part), layers=layers)
    if not part.path[-1].endswith("embedding"):
        return Recipe(part.role, part.shape, "xavier_uniform")
    if part.kind == "trained" or not config.masked:
        return Recipe(part.role, part.shape, "normal", zero_row=PAD)
    scale = _keep_scale(config) if part.kind == "masked" else 1.0
    zero_row = PAD if config.reference else None
    scheme = config.init_embedding or config.init_scheme
    return Recipe(part.role, part.shape, scheme, scale, fan_in=config.d_model, zero_row=zero_row)


def _scheme(config: ModelConfig, part: Part) -> tuple[str, float]:
    """Scheme and scale of a matrix of a layer."""
    name = part.path[-1]
    if part.kind == "fixed":
        return ORTHOGONAL, 1.0
    masked = part.kind == "masked"
    if config.init_attention != "scheme" or not masked:
        scheme = "xavier_constant" if masked and config.init_attention == "xavier_constant" else "xavier_uniform"
        if name in ("query", "key", "value"):
            return scheme, math.sqrt(0.5)
        if name == "output" or not masked:
            return scheme, 1.0
    return config.init_scheme, _keep_scale(config)


def _keep_scale(config: ModelConfig) -> float:
    return math.sqrt(1 / float(config.supermask.mean_square)) if config.scale_by_keep else 1.0


def _found_scale(config: ModelConfig) -> float:
    """The factor of pre-trained rows: under masks that of drawn rows, or in preset `reference` √(1/(1-keep)), as in the paper's code.

    The code means the fraction that is dropped where it has the one that is kept; both factors are equal at keep 0.5 alone. At keep 1 the
    code's would be infinite; here nothing is masked then, and rows are not scaled.
    """
    if config.embedding != "masked":
        return 1.0
    if config.reference:
        keep = config.keep
        return math.sqrt(1 / (1 - keep)) if keep < 1.0 else 1.0
    return _keep_scale(config)


def _scores(config: ModelConfig, part: Part, recipe: Recipe) -> Recipe:
    """How the scores of a matrix are drawn; every layer has its own unless the layers share one mask.

    U(±1/√fan_in) is Kaiming uniform with a = √5, which has 1/√6 of the usual bound.
    """
    layers = part.group.count if part.group and config.sharing != "masks" else None
    role, scale = f"{recipe.role}/scores", math.sqrt(1 / 6)
    return Recipe(role, recipe.shape, "kaiming_uniform", scale, fan_in=recipe.fan_in, layers=layers)


def _beside(config: ModelConfig, part: Part) -> dict[str, Recipe | _Constant]:
    """What is trained beside the mask of a layer's matrix, with the layer axis first: gains of 1, and adapters whose products are 0."""
    assert part.group
    count, rank = part.group.count, config.adapter_rank
    found: dict[str, Recipe | _Constant] = {
        name: _Constant((count, part.shape[1]), 1.0) for name in GAINS[config.gains]
    }
    if rank:
        shape = (rank, part.shape[0])
        found[ADAPTER_IN] = Recipe(f"{part.role}/adapter", shape, "normal", layers=count)
        found[ADAPTER_OUT] = _Constant((count, rank, part.shape[1]), 0.0)
    return found
