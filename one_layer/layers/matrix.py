"""A matrix that is trained, random, or random under a trained mask, and the projections and embeddings made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from jaxtyping import Array, Float, Int, Shaped

from one_layer.supermask import Supermask, unpack

Path = tuple[str, ...]
Variables = dict[str, Any]

NORMS = ("plain", "affine", "frozen")  # the kinds of `Norm`


def matrix(
    module: nn.Module, shape: tuple[int, int], kind: str, mask: Supermask, axis: int
) -> Float[Array, "rows columns"]:
    """The matrix that `module` multiplies by, declared among the variables of `module`.

    `kind` `trained`: `params/kernel`. `fixed`: W, never trained: `frozen/kernel` where it is there (values from elsewhere), else
    `random/kernel`. `masked`: W ⊙ M with M the Supermask of `params/scores` (paper A, section 3), or the product itself where
    `materialized/kernel` holds it already, or W under the mask that `packed/mask` holds, a bit an entry, with `packed/sign` where
    masks have signs: memory for the bits alone, and an unpacking at every use. `axis` is that of the outputs, or of the
    tokens. Values come from `one_layer.models.initialize`; the zeros here only tell Flax the shapes.
    """
    zeros = nn.initializers.zeros
    if kind == "trained":
        return jnp.asarray(module.param("kernel", zeros, shape))
    if module.has_variable("materialized", "kernel"):
        return module.get_variable("materialized", "kernel")
    source = "frozen" if module.has_variable("frozen", "kernel") else "random"
    weights = module.variable(source, "kernel", jnp.zeros, shape).value
    if kind == "fixed" or mask.keeps_all:
        return jnp.asarray(weights)
    if module.has_variable("packed", "mask"):
        return weights * mask.scaled(_unpacked(module, shape), axis)
    return weights * mask(module.param("scores", zeros, shape), axis)


def _unpacked(module: nn.Module, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    mask = unpack(module.get_variable("packed", "mask"), shape)
    if module.has_variable("packed", "sign"):  # set where the mask is -1
        mask = mask * (1.0 - 2.0 * unpack(module.get_variable("packed", "sign"), shape))
    return mask


def materialize(variables: Variables, mask: Supermask) -> Variables:
    """`variables` with every W ⊙ M computed once, into the collection `materialized`, instead of the scores and their W.

    Of a stack's scores and its W, either has the layer axis first where it is not shared. The network gives the same numbers
    from the result without a selection a step: what training, evaluation and decoding want.
    """
    flat = {name: flatten_dict(variables.get(name, {})) for name in ("params", "random", "frozen")}
    products = flatten_dict(variables.get("materialized", {}))
    scores = {path: flat["params"].pop(path) for path in list(flat["params"]) if path[-1] == "scores"}
    for path, chosen in for_each_mask(scores, mask).items():
        kernel = (*path[:-1], "kernel")
        products[kernel] = flat["frozen" if kernel in flat["frozen"] else "random"].pop(kernel) * chosen
    made = {name: unflatten_dict(arrays) for name, arrays in (flat | {"materialized": products}).items()}
    return {**variables, **{name: tree for name, tree in made.items() if tree or name in variables or name not in flat}}


def for_each_mask(
    scores: Mapping[Path, Float[Array, "*layers rows columns"]],
    mask: Supermask,
    use: Callable[[Float[Array, "rows columns"]], Array] = lambda chosen: chosen,
) -> dict[Path, Shaped[Array, "..."]]:
    """`use` of the mask of every layer of all scores, by their paths, with the layer axis first where scores have one.

    All masks of one shape are selected in one loop: XLA compiles one selection for each shape and not for each matrix, and on
    several devices a pass over all of them is one reduction.
    """
    alike: dict[tuple[Any, ...], list[Path]] = {}
    for path, leaf in scores.items():
        of_table = any(name.endswith("embedding") for name in path)
        alike.setdefault((leaf.shape[-2:], 0 if of_table else -1), []).append(path)
    found: dict[Path, Array] = {}
    for (shape, axis), paths in alike.items():
        layers = [scores[path].reshape(-1, *shape) for path in paths]

        def one(matrix: Float[Array, "rows columns"], axis: int = axis) -> Array:
            return use(mask(matrix, axis=axis))

        whole = jnp.concatenate(layers)
        made = one(whole[0])[None] if len(whole) == 1 else jax.lax.map(one, whole)
        ends = np.cumsum([len(each) for each in layers])
        for path, part in zip(paths, jnp.split(made, ends[:-1].tolist()), strict=True):
            found[path] = part if scores[path].ndim == 3 else part[0]
    return found


class Projection(nn.Module):
    """x W + b, with b only if `bias`; computed in `dtype`."""

    features: int
    kind: str
    mask: Supermask
    bias: bool
    dtype: str

    @nn.compact
    def __call__(self, x: Float[Array, "*batch fan_in"]) -> Float[Array, "*batch fan_out"]:
        kernel = matrix(self, (x.shape[-1], self.features), self.kind, self.mask, axis=-1)
        y = jnp.dot(x.astype(self.dtype), kernel.astype(self.dtype))
        if self.bias:
            y = y + self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)
        return y


class Embedding(nn.Module):
    """A table of one row a token: looked up at the input and, where tied, the output projection (paper A, section 4)."""

    vocabulary: int
    features: int
    kind: str
    mask: Supermask

    @nn.compact
    def __call__(self) -> Float[Array, "vocabulary d"]:
        return matrix(self, (self.vocabulary, self.features), self.kind, self.mask, axis=0)


def embed(
    table: Float[Array, "vocabulary d"], tokens: Int[Array | np.ndarray, "batch length"]
) -> Float[Array, "batch length d"]:
    """Rows of `table`, scaled by √d (Vaswani et al. 2017, section 3.4)."""
    return table[tokens] * np.float32(np.sqrt(table.shape[1]))


def sinusoids(length: int, features: int) -> Float[np.ndarray, "length features"]:
    """Row p is [sin(p f_0), ..., sin(p f_h-1), cos(p f_0), ...], h = features / 2, f_i = 10000^(-i / (h - 1)).

    The reference's variant of Vaswani et al. 2017, section 3.5: sines and cosines in two halves, h - 1 in the denominator.
    """
    half = features // 2
    frequencies = np.exp(-np.log(10000.0) / (half - 1) * np.arange(half))
    angles = np.arange(length)[:, None] * frequencies[None, :]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


class Norm(nn.Module):
    """LayerNorm (eps 1e-5), its statistics in float32; scale and shift only if `affine`, fixed ones if `frozen`."""

    kind: str
    dtype: str

    @nn.compact
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        affine = self.kind == "affine"
        y = nn.LayerNorm(
            epsilon=1e-5,
            use_bias=affine,
            use_scale=affine,
            use_fast_variance=False,
            dtype=self.dtype,
            name="layer_norm" if affine else "normalise",
        )(x)
        return _FixedAffine(name="layer_norm")(y) if self.kind == "frozen" else y


class _FixedAffine(nn.Module):
    """A scale and a shift that nobody trains."""

    @nn.compact
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        scale = self.variable("frozen", "scale", jnp.ones, x.shape[-1]).value
        shift = self.variable("frozen", "bias", jnp.zeros, x.shape[-1]).value
        return (x * scale + shift).astype(x.dtype)


class Drop(nn.Module):
    """Dropout, applied where the call of the network was given a random stream `dropout`, and so in training alone."""

    rate: float

    @nn.compact
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        return nn.Dropout(self.rate)(x, deterministic=not self.has_rng("dropout"))
