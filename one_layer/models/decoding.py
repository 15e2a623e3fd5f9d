"""Decoders token by token, which equal networks on whole sequences with much less work: for a search, and for sampling."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.attention import empty_cache
from one_layer.layers.blocks import DecoderLayer
from one_layer.layers.groups import layers_apart
from one_layer.layers.materializing import computing
from one_layer.layers.matrix import Norm
from one_layer.layers.reservoirs import empty_state
from one_layer.layers.settings import BLOCK, LayerSettings
from one_layer.layers.trees import Variables
from one_layer.models.config import ModelConfig
from one_layer.models.networks import AnyArray, CausalModel, Transformer, embedded, keys_that_count

# For each layer: keys and values, or the state of a reservoir; rows are the first axis.
CausalCache = tuple[Variables, ...]


class Cache(NamedTuple):
    """The state of the decoder between two steps of a search.

    `layers` has, for each layer with attention, the keys and values of all tokens of all beams (see `layers.attention.empty_cache`);
    they are written in place and never moved. `ancestors` says, for each beam and position, which beam its ancestor was; -1 if nothing is
    written yet. A layer with a state of its own (see `layers.reservoirs.empty_state`) has one state for each beam, which moves with it.
    """

    layers: tuple[Variables, ...]
    ancestors: Int[Array, "batch beam positions"]


class Steps:
    """The layers of a decoder, for a loop over tokens. The constructor does the work that can be done before the loop.

    It splits the matrices by layer, in the type that the model computes in. With `source`, it encodes the sources and computes every
    layer's keys and values from them. Packed masks stay packed: they are unpacked at every use, never all at once.
    """

    def __init__(self, network: Any, variables: Variables, source: Int[AnyArray, "batch source"] | None = None) -> None:
        self.config, self._network = network.config, network
        self._variables = computing(variables, self.config.dtype)
        memory = {}
        if source is not None:
            _, memory = network.apply(self._variables, source, method="remember", mutable=["memory"])
        stacks = {name: tree["decoder"] for name, tree in {**self._variables, **memory}.items() if "decoder" in tree}
        self.settings = self.config.stack("decoder")
        self.layers = layers_apart(stacks, self.settings)
        self._final_norm = {name: tree["final_norm"] for name, tree in stacks.items() if "final_norm" in tree}
        self._tables = None if "packed" in variables else self._made_tables()

    def tables(self) -> tuple[Float[Array, "vocab d"], Float[Array, "vocab d"]]:
        """The embedding for the lookup, and the same table as the output projection, in the type that the model computes in."""
        return self._tables or self._made_tables()

    def _made_tables(self) -> tuple[Float[Array, "vocab d"], Float[Array, "vocab d"]]:
        table = jnp.asarray(self._network.apply(self._variables, "target", method="table"))
        return table, table.astype(self.config.dtype)

    def run(
        self,
        x: Float[Array, "rows length d"],
        cache: tuple[Variables, ...],
        past: Bool[Array, "blocks ..."],
        visible: Bool[Array, "rows 1 1 source"] | None,
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "rows length d"], tuple[Variables, ...]]:
        """The last layer's output for one token of each sequence, and the new cache; see `DecoderLayer` for the arguments."""
        kept = []
        for (settings, variables), cached in zip(self.layers, cache, strict=True):
            state, arguments = {**variables, "cache": cached}, (x, None, past, visible, position)
            x, changed = DecoderLayer(settings).apply(state, *arguments, mutable=["cache"])
            kept.append(changed.get("cache", {}))
        if self.settings.final_norm is not None:
            norm = Norm(self.settings.final_norm, self.config.dtype, self.config.norm_epsilon)
            x = jnp.asarray(norm.apply(self._final_norm, x))
        return x, tuple(kept)


class Decoder(Steps):
    """The decoder for a batch of sources."""

    def __init__(self, config: ModelConfig, variables: Variables, source: Int[AnyArray, "batch source"]) -> None:
        super().__init__(Transformer(config), variables, source)
        self._batch, self._visible = source.shape[0], keys_that_count(source)

    def start(self, beam: int, length: int) -> Cache:
        """An empty cache for at most `length` tokens per beam, including the eos that is fed first."""
        layers = tuple(empty(settings, self._batch, beam, length) for settings, _ in self.layers)
        positions = -(-length // BLOCK) * BLOCK
        return Cache(layers, jnp.full((self._batch, beam, positions), -1, jnp.int32))

    def step(
        self, tokens: Int[AnyArray, "rows"], position: Int[Array, ""], cache: Cache
    ) -> tuple[Float[Array, "rows vocab"], Cache]:
        """Takes `tokens`, which are at `position` (0 for the first eos). Returns float32 logits of the next tokens, and the new cache.

        Row b·beam + k is beam k of sentence b.
        """
        beam, positions = cache.ancestors.shape[1:]
        here = jnp.broadcast_to(jnp.arange(beam, dtype=jnp.int32)[None, :, None], (self._batch, beam, 1))
        ancestors = jax.lax.dynamic_update_slice_in_dim(cache.ancestors, here, position, axis=2)
        # [blocks, batch, 1, beam, block·beam]: entries are ordered by position, and within a position by beam.
        past = ancestors.reshape(self._batch, beam, -1, BLOCK, 1) == jnp.arange(beam)
        past = jnp.moveaxis(past.reshape(*past.shape[:3], -1), 2, 0)[:, :, None]

        table, projection = self.tables()
        rows = jnp.asarray(tokens).reshape(self._batch, beam)
        x = embedded(table, rows, position + PAD + 1, positions, self.config.modern).astype(self.config.dtype)
        x, kept = self.run(x, cache.layers, past, self._visible, position)
        logits = jnp.dot(x.reshape(-1, x.shape[-1]), projection.T, preferred_element_type=jnp.float32)
        return logits, Cache(kept, ancestors)


def reorder(cache: Cache, parents: Int[Array, "batch beam"]) -> Cache:
    """The cache after every beam was replaced by a continuation of its parent: `ancestors` and the states of layers follow the beams."""

    def follow(leaf: Array) -> Array:
        return jnp.take_along_axis(leaf, parents.reshape(*parents.shape, *[1] * (leaf.ndim - 2)), axis=1)

    def moved(path: tuple[Any, ...], leaf: Array) -> Array:
        return follow(leaf) if path[-1].key == "state" else leaf

    return Cache(jax.tree_util.tree_map_with_path(moved, cache.layers), follow(cache.ancestors))


def empty(settings: LayerSettings, batch: int, beam: int, length: int) -> Variables:
    """The cache of one layer before the first token."""
    s = settings
    if s.block == "transformer":
        return {"self_attention": empty_cache(batch, beam, length, s.heads, s.d_model // s.heads, s.dtype)}
    return empty_state(s.block, batch, beam, s.d_model, s.dtype)


class CausalDecoder(Steps):
    """Every row is at a position of its own, so rows may have prompts of different lengths."""

    def __init__(self, config: ModelConfig, variables: Variables) -> None:
        super().__init__(CausalModel(config), variables)
        self._learned = self._network.apply(self._variables, method="position_table")

    def start(self, rows: int, length: int) -> CausalCache:
        """An empty cache for at most `length` tokens in each of `rows`."""
        one = tuple(empty(settings, 1, 1, length) for settings, _ in self.layers)
        return jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), one)

    def step(
        self, tokens: Int[Array, "rows"], positions: Int[Array, "rows"], cache: CausalCache, length: int
    ) -> tuple[Float[Array, "rows vocab"], CausalCache]:
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
        self, x: Float[Array, "1 d"], position: Int[Array, ""], cache: CausalCache, blocks: int
    ) -> tuple[Float[Array, "1 d"], CausalCache]:
        """The last layer's output for one row's token, which sees the entries of the cache up to its position."""
        cache = jax.tree_util.tree_map_with_path(lambda path, leaf: _begun(path, leaf, position), cache)
        past = (jnp.arange(blocks * BLOCK) <= position).reshape(blocks, 1, 1, 1, BLOCK)
        y, cache = self.run(x[None], cache, past, None, position)
        return y[0], cache


def _begun(path: tuple[Any, ...], leaf: Array, position: Int[Array, ""]) -> Array:
    """The state of a reservoir is zero before the first token. Old keys and values need no such care: they are not visible."""
    return jnp.where(position > 0, leaf, 0) if path[-1].key == "state" else leaf
