"""The causal language model, token by token with a cache. It equals `CausalModel` on whole sequences with much less work."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.attention import BLOCK
from one_layer.layers.blocks import DecoderLayer
from one_layer.layers.groups import layers_apart
from one_layer.layers.matrix import Norm, computing, embed
from one_layer.models.causal import CausalModel
from one_layer.models.config import ModelConfig
from one_layer.models.decoding import empty
from one_layer.models.inputs import position_table

Variables = dict[str, Any]
Cache = tuple[Variables, ...]  # for each layer: keys and values, or the state of a reservoir; rows are the first axis


class CausalDecoder:
    """Every row is at a position of its own, so rows may have prompts of different lengths. Packed masks stay packed."""

    def __init__(self, config: ModelConfig, variables: Variables) -> None:
        variables = computing(variables, config.dtype)
        self._config, self._settings = config, config.stack("decoder")
        stacks = {name: tree["decoder"] for name, tree in variables.items() if "decoder" in tree}
        self._layers = layers_apart(stacks, self._settings)
        self._final_norm = {name: tree["final_norm"] for name, tree in stacks.items() if "final_norm" in tree}
        self._variables = variables
        self._tables = None if "packed" in variables else self._made_tables()

    def start(self, rows: int, length: int) -> Cache:
        """An empty cache for at most `length` tokens in each of `rows`."""
        one = tuple(empty(settings, 1, 1, length) for settings, _ in self._layers)
        return jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), one)

    def step(
        self, tokens: Int[Array, "rows"], positions: Int[Array, "rows"], cache: Cache, length: int
    ) -> tuple[Float[Array, "rows vocab"], Cache]:
        """Takes each row's token at its position (0 for the first). Returns float32 logits of the next tokens, and the new cache.

        A row at position 0 begins anew, whatever the cache holds of it. `length` is that of `start`.
        """
        table, projection = self._tables or self._made_tables()
        x = (
            embed(table, tokens[:, None])
            + position_table(length, table.shape[1], self._config.modern)[positions + PAD + 1][:, None]
        )
        x, cache = jax.vmap(self._row)(x.astype(self._config.dtype), positions, cache)
        logits = jnp.einsum("rd,vd->rv", x[:, 0], projection, preferred_element_type=jnp.float32)
        return logits, cache

    def _made_tables(self) -> tuple[Float[Array, "vocab d"], Float[Array, "vocab d"]]:
        """The embedding for the lookup, and the same table as the output projection, in the type that the model computes in."""
        table = jnp.asarray(CausalModel(self._config).apply(self._variables, method="table"))
        return table, table.astype(self._config.dtype)

    def _row(self, x: Float[Array, "1 d"], position: Int[Array, ""], cache: Cache) -> tuple[Array, Cache]:
        """The last layer's output for one row's token."""
        kept, y = [], x[None]
        for (settings, variables), cached in zip(self._layers, cache, strict=True):
            cached = jax.tree_util.tree_map_with_path(lambda path, leaf: _begun(path, leaf, position), cached)
            past = _past(cached, position)
            state, arguments = {**variables, "cache": cached}, (y, None, past, None, position)
            y, changed = DecoderLayer(settings).apply(state, *arguments, mutable=["cache"])
            kept.append(changed.get("cache", {}))
        if self._settings.final_norm is not None:
            y = jnp.asarray(Norm(self._settings.final_norm, self._config.dtype).apply(self._final_norm, y))
        return y[0], tuple(kept)


def _begun(path: tuple[Any, ...], leaf: Array, position: Int[Array, ""]) -> Array:
    """The state of a reservoir is zero before the first token. Old keys and values need no such care: they are not visible."""
    return jnp.where(position > 0, leaf, 0) if path[-1].key == "state" else leaf


def _past(cached: Variables, position: Int[Array, ""]) -> Array:
    """Which entries of the cache are visible, [blocks, 1, 1, 1, block]: those up to `position`."""
    blocks = len(cached["self_attention"]["keys"]) if "self_attention" in cached else 1
    return (jnp.arange(blocks * BLOCK) <= position).reshape(blocks, 1, 1, 1, BLOCK)
