"""Multi-head attention (Vaswani et al. 2017, section 3.2), over whole sequences or token by token with a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Projection, project_together
from one_layer.layers.products import product, read_by_several
from one_layer.layers.settings import BLOCK, ROTARY_BASE
from one_layer.supermask import Supermask

# Not -inf: a pad may have no visible key at all. It then computes an unused mean over all keys; -inf would give NaN.
_NEVER = np.finfo(np.float32).min


def rotated(
    x: Float[Array, "batch length heads head"], places: Int[Array, "#length"], base: float = ROTARY_BASE
) -> Float[Array, "batch length heads head"]:
    """Rotary positions (Su et al. 2021, arXiv 2104.09864): pair i of features turns by p · base^(-2i / head) at position p.

    A pair is a feature of the first half and the one at its place in the second half. Products of rotated queries and keys depend on the
    difference of their positions alone.
    """
    half = x.shape[-1] // 2
    angles = places[:, None, None] * base ** (-np.arange(half, dtype=np.float32) / half)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1).astype(x.dtype)


class Attention(nn.Module):
    """Queries from `x` attend to keys and values from `source`; the projections are query, key, value and output.

    In decoding, the beams of a sentence are the queries of one position. Two collections hold keys and values. `memory` holds those
    of the encoded source: a call writes them if the collection is mutable, and later calls read them. `cache` holds those of the
    target tokens so far, for all beams of a sentence (see `empty_cache`): a call with `position` writes one token per beam, and
    `visible` says which entries each beam sees.

    `rotary_base`: in attention to itself, queries and keys are rotated by their positions; 0: they are not.
    """

    heads: int
    kind: str
    mask: Supermask
    bias: bool
    dropout: float
    dtype: str
    rotary_base: float = 0.0

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch queries d"],
        source: Float[Array, "batch keys d"] | None,
        visible: Bool[Array, "*blocks #batch 1 #queries allkeys"],
        position: Int[Array, ""] | None = None,
    ) -> Float[Array, "batch queries d"]:
        """`visible` is true where a query may attend; with `position`, its first axis runs over the blocks of the cache.

        If `source` is None, keys and values come from `memory`.
        """
        if x is source:
            x = source = read_by_several(x)
        elif source is not None:
            source = read_by_several(source)
        keys: Array
        values: Array
        if x is source:  # in a step of decoding, matrices stay apart: they would be joined again at each step
            query, *of_source = self._project(("query", "key", "value"), x, together=position is None)
        else:
            (query,) = self._project(("query",), x)
            of_source = [] if source is None else self._project(("key", "value"), source)
        query = query * (x.shape[-1] // self.heads) ** -0.5
        if source is None:
            keys, values = self.get_variable("memory", "keys"), self.get_variable("memory", "values")
            mixed = _attend(jnp.swapaxes(query, 1, 2), keys, values, visible).normalised(self.dtype)
        elif position is None:
            key, value = of_source
            if self.rotary_base and x is source:
                query, key = (rotated(each, jnp.arange(x.shape[1]), self.rotary_base) for each in (query, key))
            mixed = self._whole(query, key, value, visible, x is source)
        else:
            key, value = of_source
            if self.rotary_base:  # all beams are at one position
                query, key = (rotated(each, position[None], self.rotary_base) for each in (query, key))
            keys, values = self._cached(key, value, position)
            mixed = _attend_to_blocks(jnp.swapaxes(query, 1, 2), keys, values, visible, position).normalised(self.dtype)
        mixed = mixed.reshape(x.shape)
        return Projection(x.shape[-1], self.kind, self.mask, self.bias, self.dtype, name="output")(mixed)

    def _project(
        self, names: Sequence[str], x: Float[Array, "batch length d"], together: bool = True
    ) -> list[Float[Array, "batch length heads head"]]:
        width = x.shape[-1]
        projections = [Projection(width, self.kind, self.mask, self.bias, self.dtype, name=name) for name in names]
        heads = *x.shape[:2], self.heads, width // self.heads
        made = project_together(projections, x) if together else [projection(x) for projection in projections]
        return [each.reshape(heads) for each in made]

    def _whole(self, query: Array, keys: Array, values: Array, visible: Array, to_itself: bool) -> Array:
        """Attention over whole sequences. In cross-attention, the keys and values are also written into a mutable `memory`."""
        if not to_itself and self.is_mutable_collection("memory") and not self.is_initializing():
            self.put_variable("memory", "keys", keys.transpose(0, 2, 3, 1))
            self.put_variable("memory", "values", values.transpose(0, 2, 1, 3))
        scores = product("bqhd,bkhd->bhqk", query, keys, self.dtype)
        weights = jax.nn.softmax(jnp.where(visible, scores, _NEVER)).astype(self.dtype)
        weights = Drop(self.dropout)(weights)
        return product("bhqk,bkhd->bqhd", weights, values, self.dtype, self.dtype)

    def _cached(
        self,
        keys: Float[Array, "batch beams heads head"],
        values: Float[Array, "batch beams heads head"],
        position: Array,
    ) -> tuple[Array, Array]:
        """Writes the new tokens' keys and values at `position`, and returns those of the whole cache."""
        block, first = position // BLOCK, position % BLOCK * keys.shape[1]
        news = {"keys": keys.transpose(0, 2, 3, 1)[None], "values": values.transpose(0, 2, 1, 3)[None]}
        zero = jnp.zeros_like(block)  # all places of one type, also where JAX counts in 64 bits
        places = {"keys": (block, zero, zero, zero, first), "values": (block, zero, zero, first, zero)}
        for name, new in news.items():
            cached = lax.dynamic_update_slice(self.get_variable("cache", name), new, places[name])
            self.put_variable("cache", name, cached)
        return self.get_variable("cache", "keys"), self.get_variable("cache", "values")


def empty_cache(batch: int, beams: int, length: int, heads: int, head: int, dtype: str) -> dict[str, Array]:
    """The collection `cache` of one layer, for `length` tokens in blocks of `BLOCK` positions.

    The shapes are `keys` [blocks, batch, heads, head, block·beams] and `values` [blocks, batch, heads, block·beams, head], the
    layouts that the products of a step need. An entry is written once and never moved: `visible` tells which beam descends from which.
    """
    blocks = -(-length // BLOCK)
    return {
        "keys": jnp.zeros((blocks, batch, heads, head, BLOCK * beams), dtype),
        "values": jnp.zeros((blocks, batch, heads, BLOCK * beams, head), dtype),
    }


class _Mixed(NamedTuple):
    """A softmax-weighted sum of values over some keys, in float32, not yet normalised, so that sums over other keys can be added.

    The weights are exp(score - `highest`); `total` is their sum and `values` the weighted sum.
    """

    highest: Float[Array, "batch heads queries"]
    total: Float[Array, "batch heads queries"]
    values: Float[Array, "batch heads queries head"]

    def normalised(self, dtype: str) -> Float[Array, "batch queries heads head"]:
        return jnp.swapaxes(self.values / self.total[..., None], 1, 2).astype(dtype)

    def __add__(self, other: _Mixed) -> _Mixed:  # type: ignore[override]
        """The sum over the keys of both."""
        highest = jnp.maximum(self.highest, other.highest)
        mine, others = jnp.exp(self.highest - highest), jnp.exp(other.highest - highest)
        values = self.values * mine[..., None] + other.values * others[..., None]
        return _Mixed(highest, self.total * mine + other.total * others, values)


def _attend(
    query: Float[Array, "batch heads queries head"],
    keys: Float[Array, "batch heads head keys"],
    values: Float[Array, "batch heads keys head"],
    visible: Bool[Array, "#batch 1 #queries keys"],
) -> _Mixed:
    scores = product("bhqd,bhdk->bhqk", query, keys, values.dtype)
    scores = jnp.where(visible, scores, _NEVER)
    highest = jnp.max(scores, axis=-1)
    weights = jnp.exp(scores - highest[..., None])
    mixed = product("bhqk,bhkd->bhqd", weights, values, values.dtype)
    return _Mixed(highest, jnp.sum(weights, axis=-1), mixed)


def _attend_to_blocks(
    query: Float[Array, "batch heads beams head"],
    keys: Float[Array, "blocks batch heads head entries"],
    values: Float[Array, "blocks batch heads entries head"],
    visible: Bool[Array, "blocks batch 1 beams entries"],
    position: Int[Array, ""],
) -> _Mixed:
    """Attends to the blocks up to the one of `position`, one after the other. In the first block, every query sees some entry."""

    def block(number: int | Array) -> _Mixed:
        return _attend(query, *(lax.dynamic_index_in_dim(x, number, keepdims=False) for x in (keys, values, visible)))

    return lax.fori_loop(1, position // BLOCK + 1, lambda number, mixed: mixed + block(number), block(0))
