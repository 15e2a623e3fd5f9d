"""A matrix that is trained, random, or random under a trained mask, and the projections and embeddings made of it."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from jaxtyping import Array, Float, Int

from one_layer.supermask import topk_mask

Variables = dict[str, Any]


def matrix(module: nn.Module, shape: tuple[int, int], kind: str, keep: float) -> Float[Array, "rows columns"]:
    """The matrix that `module` multiplies by, declared among the variables of `module`.

    `kind` `trained`: `params/kernel`. `random`: `random/kernel`, never trained. `masked`: W ⊙ M with W = `random/kernel` and M
    the Supermask of `params/scores` (paper A, section 3), or the product itself where `materialized/kernel` holds it already.
    Values come from `one_layer.models.initialize`; the zeros here only tell Flax the shapes.
    """
    zeros = nn.initializers.zeros
    if kind == "trained":
        return jnp.asarray(module.param("kernel", zeros, shape))
    if module.has_variable("materialized", "kernel"):
        return module.get_variable("materialized", "kernel")
    weights = module.variable("random", "kernel", jnp.zeros, shape).value
    if kind == "random" or keep == 1.0:
        return jnp.asarray(weights)
    return weights * topk_mask(module.param("scores", zeros, shape), keep)


def materialize(variables: Variables, keep: float) -> Variables:
    """`variables` with every W ⊙ M computed once, into the collection `materialized`, instead of the scores and their W.

    Scores of a stack are [L, fan_in, fan_out]; their W is that too, or [fan_in, fan_out] where the L layers share it. The
    network gives the same numbers from the result without a selection a step: what evaluation and decoding want.
    """
    params, random = flatten_dict(variables.get("params", {})), flatten_dict(variables.get("random", {}))
    products = {}
    for path in [path for path in params if path[-1] == "scores"]:
        kernel = (*path[:-1], "kernel")
        products[kernel] = _products(params.pop(path), random.pop(kernel), keep)
    changed = {"params": params, "random": random, "materialized": products}
    return {**variables, **{name: unflatten_dict(flat) for name, flat in changed.items()}}


def _products(scores: Float[Array, "..."], weights: Float[Array, "..."], keep: float) -> Float[Array, "..."]:
    if scores.ndim == 2:
        return weights * topk_mask(scores, keep)
    if weights.ndim == 2:
        return jax.lax.map(lambda layer: weights * topk_mask(layer, keep), scores)
    return jax.lax.map(lambda layer: layer[1] * topk_mask(layer[0], keep), (scores, weights))


class Projection(nn.Module):
    """x W + b, with b only if `bias`; computed in `dtype`."""

    features: int
    kind: str
    keep: float
    bias: bool
    dtype: str

    @nn.compact
    def __call__(self, x: Float[Array, "*batch fan_in"]) -> Float[Array, "*batch fan_out"]:
        kernel = matrix(self, (x.shape[-1], self.features), self.kind, self.keep)
        y = jnp.dot(x.astype(self.dtype), kernel.astype(self.dtype))
        if self.bias:
            y = y + self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)
        return y


class Embedding(nn.Module):
    """A table of one row a token: looked up at the input and, where tied, the output projection (paper A, section 4)."""

    vocabulary: int
    features: int
    kind: str
    keep: float

    @nn.compact
    def __call__(self) -> Float[Array, "vocabulary d"]:
        return matrix(self, (self.vocabulary, self.features), self.kind, self.keep)


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
    """LayerNorm (eps 1e-5), its statistics in float32; trained scale and shift only if `affine`."""

    affine: bool
    dtype: str

    @nn.compact
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        return nn.LayerNorm(
            epsilon=1e-5,
            use_bias=self.affine,
            use_scale=self.affine,
            use_fast_variance=False,
            dtype=self.dtype,
            name="layer_norm",
        )(x)


class Drop(nn.Module):
    """Dropout, applied where the call of the network was given a random stream `dropout`, and so in training alone."""

    rate: float

    @nn.compact
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        return nn.Dropout(self.rate)(x, deterministic=not self.has_rng("dropout"))
