"""Multi-head attention (Vaswani et al. 2017, section 3.2), whole sequences or one token at a time from a cache."""

from __future__ import annotations

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


class Attention(nn.Module):
    """Queries made of `x` attend to keys and values made of `source`, by the projections query, key, value and output.

    Collections of decoding: `cache` holds the keys and values of the tokens so far, [rows, length, heads, head size], and a
    call with `position` writes its one token there; `memory` holds those of the encoded source, [batch, source, heads, head
    size], written once where it is mutable and then read. Rows of one sentence (its beams) read the same memory.
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
        x: Float[Array, "rows queries d"],
        source: Float[Array, "batch keys d"] | None,
        visible: Bool[Array, "#batch 1 #queries allkeys"],
        position: Int[Array, ""] | None = None,
    ) -> Float[Array, "rows queries d"]:
        """`visible` is true where a query may look. `source` None means that `memory` is there."""
        query = self._project("query", x) * (x.shape[-1] // self.heads) ** -0.5
        keys: Array
        values: Array
        if source is None:
            keys, values = self.get_variable("memory", "keys"), self.get_variable("memory", "values")
        else:
            keys, values = self._project("key", source), self._project("value", source)
            if source is not x and self.is_mutable_collection("memory") and not self.is_initializing():
                self.put_variable("memory", "keys", keys)
                self.put_variable("memory", "values", values)
        if position is not None:
            keys, values = self._cached("keys", keys, position), self._cached("values", values, position)
        # The beams of a sentence become queries of that sentence, so that its memory is neither copied nor gathered.
        query = query.reshape(keys.shape[0], -1, *query.shape[2:])
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, keys, preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(jnp.where(visible, scores, _NEVER)).astype(self.dtype)
        weights = Drop(self.dropout)(weights)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, values).reshape(x.shape)
        return Projection(x.shape[-1], self.kind, self.mask, self.bias, self.dtype, name="output")(mixed)

    def _project(self, name: str, x: Float[Array, "batch length d"]) -> Float[Array, "batch length heads head"]:
        projection = Projection(x.shape[-1], self.kind, self.mask, self.bias, self.dtype, name=name)
        return projection(x).reshape(*x.shape[:2], self.heads, -1)

    def _cached(self, name: str, new: Float[Array, "rows 1 heads head"], position: Int[Array, ""]) -> Array:
        """The cache with the new token's entry written at `position`."""
        cached = lax.dynamic_update_slice_in_dim(self.get_variable("cache", name), new, position, axis=1)
        self.put_variable("cache", name, cached)
        return cached
