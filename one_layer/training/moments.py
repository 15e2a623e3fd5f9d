"""How Adam's two running means are stored between updates: in float32, or in fewer bytes. Each update computes with them in float32.

| `optim.moments` | mean of the gradient | mean of its square | bytes of a weight |
|---|---|---|---|
| `float32` | float32 | float32 | 8 |
| `bfloat16` | bfloat16 | bfloat16, rounded at random | 4 |
| `factored` | bfloat16 | of a matrix, the means of its rows and of its columns | 2 |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, BFloat16, Float, Int, UInt32

from one_layer.layers.quantization import VECTORS

Tree = Any
Rate = float | Float[Array, ""]


class Factors(NamedTuple):
    """The means of each row and of each column of a matrix of squares (Shazeer and Stern 2018, arXiv 1804.04235, section 3)."""

    rows: Float[Array, "*layers rows 1"]
    columns: Float[Array, "*layers 1 columns"]


def initial(kind: str, params: Tree) -> tuple[Tree, Tree]:
    """The means of gradients and of their squares before the first update: zeros."""

    def square(path: Any, leaf: Array | np.ndarray) -> Factors | Array:
        if kind == "factored" and leaf.ndim > 1 and path[-1].key not in VECTORS:
            return Factors(jnp.zeros_like(leaf[..., :1]), jnp.zeros_like(leaf[..., :1, :]))
        return jnp.zeros_like(leaf, dtype=jnp.bfloat16 if kind == "bfloat16" else None)

    mean = jnp.float32 if kind == "float32" else jnp.bfloat16
    zeros = jax.tree.map(lambda leaf: jnp.zeros_like(leaf, dtype=mean), params)
    return zeros, jax.tree_util.tree_map_with_path(square, params)


def averaged(decay: Rate, square: Any, gradient: Float[Array, "*shape"]) -> Any:
    """The running mean of squares, in float32, with those of this update's gradient; as `Factors` if `square` is."""
    if isinstance(square, Factors):
        news = Factors(*((gradient * gradient).mean(axis, keepdims=True) for axis in (-1, -2)))
        return jax.tree.map(lambda old, new: decay * old + (1.0 - decay) * new, square, news)
    return decay * square.astype(jnp.float32) + (1.0 - decay) * gradient * gradient


def root(square: Any) -> Float[Array, "..."]:
    """√v. Of factors, v is the product of the row's and the column's mean over the mean of all, which has the same means."""
    if isinstance(square, Factors):
        of_all = square.rows.mean(-2, keepdims=True)
        share = square.rows / jnp.where(of_all > 0, of_all, 1.0)
        return jnp.sqrt(share) * jnp.sqrt(square.columns)  # their product could be less than float32 has
    return jnp.sqrt(square)


def stored(kind: str, count: Int[Array, ""], mean: Tree, square: Tree) -> tuple[Tree, Tree]:
    """Both means as they are kept until the next update. `count`: the number of this update."""
    if kind == "float32":
        return mean, square
    mean = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), mean)
    if kind == "bfloat16":
        square = jax.tree.map(lambda leaf: rounded(leaf, count), square)
    return mean, square


def rounded(values: Float[Array, "*shape"], count: Int[Array, ""]) -> BFloat16[Array, "*shape"]:
    """`values`, not negative, in bfloat16: up or down, so that the expected value stays.

    To the nearest, a mean whose decay is 0.999 would never change: its changes are less than half of the last place. The random numbers
    follow from the bits of a value and from `count`, so they are the same on all devices, and take no memory.
    """
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    bits += _mixed(bits ^ _mixed(count.astype(jnp.uint32))) >> 16
    return jax.lax.bitcast_convert_type((bits >> 16).astype(jnp.uint16), jnp.bfloat16)


def _mixed(bits: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """The last steps of MurmurHash3 (Appleby 2011), in which every bit of a number changes every other one."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return bits ^ (bits >> 16)
