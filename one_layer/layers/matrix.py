"""Matrices (trained, random, or random under a trained mask), and the projections, embeddings and norms that layers use."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from one_layer.layers.beside import BESIDE, with_beside
from one_layer.layers.materializing import trained_leaf
from one_layer.layers.products import product, several_share_a_layer
from one_layer.platform import on_gpu
from one_layer.supermask import Supermask, unpack_mask


def matrix(
    module: nn.Module, shape: tuple[int, int], kind: str, mask: Supermask, axis: int
) -> Float[Array, "rows columns"]:
    """The matrix of `module`, declared as a variable of `module`. Its `kind` decides where it comes from:

    - `trained`: `params/kernel`.
    - `fixed`: W, which is never trained. It is `frozen/kernel` if that exists (values from elsewhere), else `random/kernel`.
    - `masked`: W ⊙ M, with M the Supermask of `params/scores` (paper A, section 3). If `materialized/kernel` exists, it holds this
      product. If `packed` exists, it holds M as bits (`Supermask.kinds`), which are unpacked at every use. `params` may have
      more that is trained beside the mask (`one_layer.layers.beside`).

    `axis` is the axis of the outputs, or of the tokens in an embedding. The values come from `one_layer.models.initialize`; the zeros
    here only tell Flax the shapes.
    """
    zeros = nn.initializers.zeros
    if module.has_variable("materialized", "kernel"):
        return module.get_variable("materialized", "kernel")
    beside: dict[str, Array] = {
        name: module.get_variable("params", name) for name in BESIDE if module.has_variable("params", name)
    }
    if kind == "trained":
        return with_beside(jnp.asarray(module.param("kernel", zeros, shape)), beside)
    source = "frozen" if module.has_variable("frozen", "kernel") else "random"
    weights = module.variable(source, "kernel", jnp.zeros, shape).value
    if trained_leaf(kind, mask) is None:
        return with_beside(jnp.asarray(weights), beside)
    if module.has_variable("packed", mask.kinds[0]):
        bits: dict[str, Array] = {kind: module.get_variable("packed", kind) for kind in mask.kinds}
        return with_beside(weights * mask.scaled(unpack_mask(bits, shape), axis), beside)
    return with_beside(weights * mask(module.param("scores", zeros, shape), axis), beside)


class Projection(nn.Module):
    """x W, plus b if `bias`; computed in `dtype`."""

    features: int
    kind: str
    mask: Supermask
    bias: bool
    dtype: str

    def __call__(self, x: Float[Array, "*batch fan_in"]) -> Float[Array, "*batch fan_out"]:
        return _projected(x, *self.parts(x.shape[-1]), self.dtype)

    @nn.compact
    def parts(self, fan_in: int) -> tuple[Float[Array, "fan_in fan_out"], Float[Array | np.ndarray, "fan_out"] | None]:
        """W, and b or None."""
        kernel = matrix(self, (fan_in, self.features), self.kind, self.mask, axis=-1)
        return kernel, self.param("bias", nn.initializers.zeros, (self.features,)) if self.bias else None


def _projected(x: Array, kernel: Array, bias: Array | np.ndarray | None, dtype: str) -> Array:
    if bias is None:
        return product("...i,io->...o", x, kernel, dtype, dtype)
    if on_gpu():  # cuBLAS adds b to the sums before it rounds them
        return product("...i,io->...o", x, kernel, dtype, dtype) + jnp.asarray(bias, dtype)
    return (product("...i,io->...o", x, kernel, dtype) + bias).astype(dtype)


def project_together(
    projections: Sequence[Projection], x: Float[Array, "*batch fan_in"]
) -> list[Float[Array, "*batch fan_out"]]:
    """What each of several projections, of one width, makes of `x`.

    A GPU computes one product of all matrices side by side: it reads `x`, and writes its gradient, once. Where devices share out the
    columns of each matrix, the columns of all of them lie on other devices, and each product stays by itself.
    """
    if not on_gpu() or several_share_a_layer():
        return [projection(x) for projection in projections]
    kernels, biases = zip(*(projection.parts(x.shape[-1]) for projection in projections), strict=True)
    bias = None if biases[0] is None else jnp.concatenate(biases)
    y = _projected(x, jnp.concatenate(kernels, axis=1), bias, projections[0].dtype)
    return jnp.split(y, len(projections), axis=-1)


class Matrix(nn.Module):
    """A matrix by itself, or with `axis` 0 a table of embeddings: one row per token, for the input lookup and the output projection."""

    shape: tuple[int, int]
    kind: str
    mask: Supermask
    axis: int = -1

    @nn.compact
    def __call__(self) -> Float[Array, "rows columns"]:
        return matrix(self, self.shape, self.kind, self.mask, self.axis)


def sinusoids(length: int, features: int) -> Float[np.ndarray, "length features"]:
    """Row p is [sin(p f_0), ..., sin(p f_h-1), cos(p f_0), ...], h = features / 2, f_i = 10000^(-i / (h - 1)).

    This is the reference's variant of Vaswani et al. 2017, section 3.5: all sines before all cosines, and h - 1 in the denominator.
    """
    half = features // 2
    frequencies = np.exp(-np.log(10000.0) / (half - 1) * np.arange(half))
    angles = np.arange(length)[:, None] * frequencies[None, :]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


class Norm(nn.Module):
    """LayerNorm with float32 statistics. `kind`: `plain` (no scale or shift), `affine` (trained) or `frozen` (fixed).

    `rms` is RMSNorm (Zhang and Sennrich 2019, arXiv 1910.07467) with a trained scale, and `rms_plain` without.
    """

    kind: str
    dtype: str
    epsilon: float = 1e-5  # added to the mean square of the features

    @nn.compact
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        trained = self.kind in ("affine", "rms")
        options: dict[str, Any] = {"use_scale": trained, "use_fast_variance": False, "dtype": self.dtype}
        options |= {"epsilon": self.epsilon, "name": "layer_norm" if trained else "normalise"}
        if self.kind in ("rms", "rms_plain"):
            return nn.RMSNorm(**options)(x)
        y = nn.LayerNorm(use_bias=trained, **options)(x)
        return _FixedAffine(name="layer_norm")(y) if self.kind == "frozen" else y


class _FixedAffine(nn.Module):
    """A scale and a shift that are never trained."""

    @nn.compact
    def __call__(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        scale = self.variable("frozen", "scale", jnp.ones, x.shape[-1]).value
        shift = self.variable("frozen", "bias", jnp.zeros, x.shape[-1]).value
        return (x * scale + shift).astype(x.dtype)
