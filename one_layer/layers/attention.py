"""Multi-head attention (Vaswani et al. 2017, section 3.2), whole sequences or one token at a time from a cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from one_layer.layers.matrix import Drop, Projection
from one_layer.supermask import Supermask

# Not -inf: a pad may see nothing at all, and the mean of everything that it then computes harms nobody, where NaN would.
_NEVER = np.finfo(np.float32).min


# Positions of the cache that attention takes at a time, so that a step costs what is written and not what there is room for.
BLOCK = 8


class Attention(nn.Module):
    """Queries made of `x` attend to keys and values made of `source`, by the projections query, key, value and output.

    Decoding has the beams of a sentence as the queries of one position. Collections: `memory` holds the keys and values of the
    encoded source, written where it is mutable and then read. `cache` holds those of the target tokens so far, of all beams of
    a sentence (see `empty_cache`): a call with `position` writes one token a beam there, and a beam sees what `visible` says.
    """

    heads: int
    kind: str
    mask: Supermask
    bias: bool
    dropout: float
    dtype: str

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch queries d"],
        source: Float[Array, "batch keys d"] | None,
        visible: Bool[Array, "*blocks #batch 1 #queries allkeys"],
        position: Int[Array, ""] | None = None,
    ) -> Float[Array, "batch queries d"]:
        """`visible` is true where a query may look; with `position` its blocks are those of the cache.

        `source` None means that `memory` is there.
        """
        query = self._project("query", x) * (x.shape[-1] // self.heads) ** -0.5
        keys: Array
        values: Array
        if source is None:
            keys, values = self.get_variable("memory", "keys"), self.get_variable("memory", "values")
            mixed = _attend(jnp.swapaxes(query, 1, 2), keys, values, visible).normalised(self.dtype)
        elif position is None:
            mixed = self._whole(
                query, self._project("key", source), self._project("value", source), visible, x is source
            )
        else:
            keys, values = self._cached(self._project("key", x), self._project("value", x), position)
            mixed = _attend_to_blocks(jnp.swapaxes(query, 1, 2), keys, values, visible, position).normalised(self.dtype)
        mixed = mixed.reshape(x.shape)
        return Projection(x.shape[-1], self.kind, self.mask, self.bias, self.dtype, name="output")(mixed)

    def _project(self, name: str, x: Float[Array, "batch length d"]) -> Float[Array, "batch length heads head"]:
        projection = Projection(x.shape[-1], self.kind, self.mask, self.bias, self.dtype, name=name)
        return projection(x).reshape(*x.shape[:2], self.heads, -1)

    def _whole(self, query: Array, keys: Array, values: Array, visible: Array, to_itself: bool) -> Array:
        """Attention of whole sequences, in one piece; the keys and values of another sequence are remembered."""
        if not to_itself and self.is_mutable_collection("memory") and not self.is_initializing():
            self.put_variable("memory", "keys", keys.transpose(0, 2, 3, 1))
            self.put_variable("memory", "values", values.transpose(0, 2, 1, 3))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, keys, preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(jnp.where(visible, scores, _NEVER)).astype(self.dtype)
        weights = Drop(self.dropout)(weights)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, values)

    def _cached(
        self,
        keys: Float[Array, "batch beams heads head"],
        values: Float[Array, "batch beams heads head"],
        position: Array,
    ) -> tuple[Array, Array]:
        """The cache with the new tokens' entries written at `position`."""
        block, first = position // BLOCK, position % BLOCK * keys.shape[1]
        news = {"keys": keys.transpose(0, 2, 3, 1)[None], "values": values.transpose(0, 2, 1, 3)[None]}
        places: dict[str, tuple[Any, ...]] = {"keys": (block, 0, 0, 0, first), "values": (block, 0, 0, first, 0)}
        for name, new in news.items():
            cached = lax.dynamic_update_slice(self.get_variable("cache", name), new, places[name])
            self.put_variable("cache", name, cached)
        return self.get_variable("cache", "keys"), self.get_variable("cache", "values")


def empty_cache(batch: int, beams: int, length: int, heads: int, head: int, dtype: str) -> dict[str, Array]:
    """The collection `cache` of one layer, for `length` tokens in blocks of `BLOCK` positions.

    `keys` [blocks, batch, heads, head, block·beams] and `values` [blocks, batch, heads, block·beams, head]: as the products of
    a step want them. An entry is written once and never moved: who descends from whom is for `visible` to say.
    """
    blocks = -(-length // BLOCK)
    return {
        "keys": jnp.zeros((blocks, batch, heads, head, BLOCK * beams), dtype),
        "values": jnp.zeros((blocks, batch, heads, BLOCK * beams, head), dtype),
    }


class _Mixed(NamedTuple):
    """A softmax-weighted sum of values over some keys, in float32, before its division, so that others can be added.

    `total` are the weights' sum and `values` the weighted sum, both with exp(score - `highest`) for weights.
    """

    highest: Float[Array, "batch heads queries"]
    total: Float[Array, "batch heads queries"]
    values: Float[Array, "batch heads queries head"]

    def normalised(self, dtype: str) -> Float[Array, "batch queries heads head"]:
        return jnp.swapaxes(self.values / self.total[..., None], 1, 2).astype(dtype)

    def __add__(self, other: _Mixed) -> _Mixed:  # type: ignore[override]
        """Over the keys of both."""
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
    scores = jnp.einsum("bhqd,bhdk->bhqk", query, keys, preferred_element_type=jnp.float32)
    scores = jnp.where(visible, scores, _NEVER)
    highest = jnp.max(scores, axis=-1)
    weights = jnp.exp(scores - highest[..., None])
    mixed = jnp.einsum("bhqk,bhkd->bhqd", weights.astype(values.dtype), values, preferred_element_type=jnp.float32)
    return _Mixed(highest, jnp.sum(weights, axis=-1), mixed)


def _attend_to_blocks(
    query: Float[Array, "batch heads beams head"],
    keys: Float[Array, "blocks batch heads head entries"],
    values: Float[Array, "blocks batch heads entries head"],
    visible: Bool[Array, "blocks batch 1 beams entries"],
    position: Int[Array, ""],
) -> _Mixed:
    """Over the blocks up to that of `position`, one after the other. Every query sees something in the first one."""

    def block(number: int | Array) -> _Mixed:
        return _attend(query, *(lax.dynamic_index_in_dim(x, number, keepdims=False) for x in (keys, values, visible)))

    return lax.fori_loop(1, position // BLOCK + 1, lambda number, mixed: mixed + block(number), block(0))
