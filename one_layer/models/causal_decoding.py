"""The causal language model, token by token with a cache. It equals `CausalModel` on whole sequences with much less work."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.settings import BLOCK
from one_layer.models.causal import CausalModel
from one_layer.models.config import ModelConfig
from one_layer.models.decoding import Steps, empty
from one_layer.models.inputs import embedded

Variables = dict[str, Any]
Cache = tuple[Variables, ...]  # for each layer: keys and values, or the state of a reservoir; rows are the first axis


class CausalDecoder(Steps):
    """Every row is at a position of its own, so rows may have prompts of different lengths."""

    def __init__(self, config: ModelConfig, variables: Variables) -> None:
        super().__init__(CausalModel(config), variables)
        self._learned = self._network.apply(self._variables, method="position_table")

    def start(self, rows: int, length: int) -> Cache:
        """An empty cache for at most `length` tokens in each of `rows`."""
        one = tuple(empty(settings, 1, 1, length) for settings, _ in self.layers)
        return jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), one)

    def step(
        self, tokens: Int[Array, "rows"], positions: Int[Array, "rows"], cache: Cache, length: int
    ) -> tuple[Float[Array, "rows vocab"], Cache]:
        """Takes each row's token at its position (0 for the first). Returns float32 logits of the next tokens, and the new cache.

        A row at position 0 begins anew, whatever the cache holds of it. `length` is that of `start`.
        """
        table, projection = self.tables()
        x = embedded(table, tokens[:, None], positions[:, None] + PAD + 1, length, self.config.modern, self._learned)
        row = partial(self._row, blocks=-(-length // BLOCK))
        x, cache = jax.vmap(row)(x.astype(self.config.dtype), positions, cache)
        logits = jnp.einsum("rd,vd->rv", x[:, 0], projection, preferred_element_type=jnp.float32)
        return logits, cache

    def _row(
        self, x: Float[Array, "1 d"], position: Int[Array, ""], cache: Cache, blocks: int
    ) -> tuple[Float[Array, "1 d"], Cache]:
        """The last layer's output for one row's token, which sees the entries of the cache up to its position."""
        cache = jax.tree_util.tree_map_with_path(lambda path, leaf: _begun(path, leaf, position), cache)
        past = (jnp.arange(blocks * BLOCK) <= position).reshape(blocks, 1, 1, 1, BLOCK)
        y, cache = self.run(x[None], cache, past, None, position)
        return y[0], cache


def _begun(path: tuple[Any, ...], leaf: Array, position: Int[Array, ""]) -> Array:
    """The state of a reservoir is zero before the first token. Old keys and values need no such care: they are not visible."""
    return jnp.where(position > 0, leaf, 0) if path[-1].key == "state" else leaf
