"""The causal language model: a decoder alone, whose output projection is its embedding (Vaswani et al. 2017, without the encoder).

The layers are those of the translation model's decoder, without the attention to a source.
"""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.blocks import DecoderLayer
from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Embedding
from one_layer.layers.products import by_class, product
from one_layer.layers.stack import Stack
from one_layer.models.config import ModelConfig
from one_layer.models.inputs import AnyArray, embedded, keys_that_count, positions


class CausalModel(nn.Module):
    """`apply(variables, tokens)` gives logits. For generation token by token, see `one_layer.models.causal_decoding`."""

    config: ModelConfig

    def setup(self) -> None:
        c = self.config
        self.target_embedding = Embedding(c.target_vocab, c.d_model, c.table_kind, c.supermask)
        if c.position_rows:
            self.position_embedding = Embedding(c.position_rows, c.d_model, "trained", c.supermask)
        self.drop = Drop(c.dropout)
        self.decoder = Stack(DecoderLayer, c.stack("decoder"))

    def __call__(self, tokens: Int[AnyArray, "batch length"]) -> Float[Array, "batch length vocab"]:
        """Logits of the token after each token, float32. Rows are padded with 1 on the right.

        Dropout is on if the random stream `dropout` is given: `apply(..., rngs={"dropout": key})`.
        """
        table, length = self.target_embedding(), tokens.shape[1]
        x = embedded(table, tokens, positions(tokens), length, self.config.modern, self.position_table())
        self.sow("intermediates", "input", x)
        past = jnp.tril(jnp.ones((length, length), bool))[None, None] & keys_that_count(tokens)
        x = self.decoder(self.drop(x.astype(self.config.dtype)), None, past, None, None)
        return by_class(product("bld,vd->blv", x, table, x.dtype))

    def target_table(self) -> Float[Array, "vocab d"]:
        """The embedding, which is also the output projection."""
        return self.target_embedding()

    def position_table(self) -> Float[Array, "positions d"] | None:
        """The learned positions; None where positions are computed."""
        return self.position_embedding() if self.config.position_rows else None
