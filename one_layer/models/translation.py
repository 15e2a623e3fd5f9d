"""The translation model: an encoder, a decoder and their embeddings (paper A, section 4; Vaswani et al. 2017)."""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.blocks import DecoderLayer, EncoderLayer
from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Embedding
from one_layer.layers.products import by_class, product
from one_layer.layers.stack import Stack
from one_layer.models.config import ModelConfig
from one_layer.models.inputs import AnyArray, embedded, keys_that_count, positions


class Transformer(nn.Module):
    """`apply(variables, source, target_in)` gives logits. For decoding token by token, see `one_layer.models.decoding`."""

    config: ModelConfig

    def setup(self) -> None:
        c = self.config
        kind = c.table_kind
        if c.shared_embedding:
            self.shared_embedding = Embedding(c.target_vocab, c.d_model, kind, c.supermask)
        else:
            self.source_embedding = Embedding(c.source_vocab, c.d_model, kind, c.supermask)
            self.target_embedding = Embedding(c.target_vocab, c.d_model, kind, c.supermask)
        self.drop = Drop(c.dropout)
        self.encoder = Stack(EncoderLayer, c.stack("encoder"))
        self.decoder = Stack(DecoderLayer, c.stack("decoder"))

    def __call__(
        self, source: Int[AnyArray, "batch source"], target_in: Int[AnyArray, "batch target"]
    ) -> Float[Array, "batch target vocab"]:
        """Logits, float32. Token arrays are padded with 1 on either side; `target_in` starts with eos.

        Dropout is on if the random stream `dropout` is given: `apply(..., rngs={"dropout": key})`.
        """
        source_table, target_table = self._tables()
        encoded = self._encode(source_table, source)
        x = self._input(target_table, target_in)
        length = target_in.shape[1]
        past = jnp.tril(jnp.ones((length, length), bool))[None, None] & keys_that_count(target_in)
        x = self.decoder(x, encoded, past, keys_that_count(source), None)
        return _logits(x, target_table)

    def remember(self, source: Int[AnyArray, "batch source"]) -> None:
        """Encodes `source` and writes the keys and values that every decoder layer makes of it into the mutable collection `memory`."""
        encoded = self._encode(self._tables()[0], source)
        x = jnp.zeros((source.shape[0], 1, self.config.d_model), self.config.dtype)
        self.decoder(x, encoded, jnp.ones((1, 1, 1, 1), bool), keys_that_count(source), None)

    def target_table(self) -> Float[Array, "target d"]:
        """The decoder's embedding, which is also its output projection."""
        return self._tables()[1]

    def _tables(self) -> tuple[Float[Array, "source d"], Float[Array, "target d"]]:
        if self.config.shared_embedding:
            table = self.shared_embedding()
            return table, table
        return self.source_embedding(), self.target_embedding()

    def _encode(
        self, table: Float[Array, "vocab d"], source: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        return self.encoder(self._input(table, source), keys_that_count(source))

    def _input(
        self, table: Float[Array, "vocab d"], tokens: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        x = embedded(table, tokens, positions(tokens), tokens.shape[1], self.config.modern)
        self.sow("intermediates", "input", x)
        return self.drop(x.astype(self.config.dtype))


def _logits(x: Float[Array, "batch length d"], table: Float[Array, "vocab d"]) -> Float[Array, "batch length vocab"]:
    """The tied output projection: the decoder's embedding with its mask."""
    return by_class(product("bld,vd->blv", x, table, x.dtype))
