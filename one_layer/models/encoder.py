"""An encoder of texts, with its embeddings: what classifiers and masked language models have in common (Liu et al. 2019)."""

from __future__ import annotations

import flax.linen as nn
from jaxtyping import Array, Float, Int

from one_layer.layers.blocks import EncoderLayer
from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Embedding, Norm
from one_layer.layers.stack import Stack
from one_layer.models.config import ModelConfig
from one_layer.models.inputs import AnyArray, embedded, keys_that_count, positions


class TextEncoder(nn.Module):
    """Embeddings, positions and the encoder. A subclass adds a head."""

    config: ModelConfig

    def setup(self) -> None:
        c = self.config
        self.source_embedding = Embedding(c.source_vocab, c.d_model, c.table_kind, c.supermask)
        if c.position_rows:
            kind = "trained" if c.positions == "learned" else "fixed"
            self.position_embedding = Embedding(c.position_rows, c.d_model, kind, c.supermask)
        if c.embedding_norm:
            self.embedding_norm = Norm(str(c.norm), c.dtype, c.norm_epsilon)
        self.drop = Drop(c.dropout)
        self.encoder = Stack(EncoderLayer, c.stack("encoder"))

    def encode(
        self, table: Float[Array, "vocab d"], source: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        """The last hidden vectors of texts that begin with `<s>` and are padded with 1 on the right. `table` is the embedding."""
        return self.encoder(self._input(table, source), keys_that_count(source))

    def _input(
        self, table: Float[Array, "vocab d"], source: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        """Embeddings plus positions."""
        learned = self.position_embedding() if self.config.position_rows else None
        x = embedded(table, source, positions(source), source.shape[1], self.config.modern, learned)
        if self.config.embedding_norm:
            x = self.embedding_norm(x)
        self.sow("intermediates", "input", x)
        return self.drop(x.astype(self.config.dtype))
