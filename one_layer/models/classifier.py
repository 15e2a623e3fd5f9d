"""The classifier: an encoder of one or two texts, and a trained head on its first token (paper A, section 4; Liu et al. 2019).

The text begins with `<s>`. The last hidden vector of this token goes through a dense layer, a tanh and an output layer, as in RoBERTa
(arXiv 1907.11692), but without dropout between them. In a masked model, only the head has trained weights; the encoder is one random
layer under L masks.
"""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.blocks import EncoderLayer
from one_layer.layers.matrix import Drop, Embedding, Norm, Projection, embed
from one_layer.layers.stack import Stack
from one_layer.models.config import ModelConfig
from one_layer.models.families import label_count
from one_layer.models.inputs import AnyArray, keys_that_count, kind_of_tables, position_table, positions
from one_layer.special_tokens import PAD


class Classifier(nn.Module):
    """`apply(variables, source)` gives logits, float32, of the labels."""

    config: ModelConfig

    def setup(self) -> None:
        c = self.config
        self.source_embedding = Embedding(c.source_vocab, c.d_model, kind_of_tables(c), c.supermask)
        if c.positions == "frozen":
            self.position_embedding = Embedding(c.max_positions + PAD + 1, c.d_model, "fixed", c.supermask)
        if c.embedding_norm:
            self.embedding_norm = Norm(str(c.norm), c.dtype)
        self.drop = Drop(c.dropout)
        self.encoder = Stack(EncoderLayer, c.stack("encoder"))
        self.head_dense = Projection(c.d_model, "trained", c.supermask, True, c.dtype)
        # float32, because logits rounded to bfloat16 are often equal, and the first label would win the tie.
        self.head_output = Projection(label_count(c), "trained", c.supermask, True, "float32")

    def __call__(self, source: Int[AnyArray, "batch length"]) -> Float[Array, "batch labels"]:
        """Logits of texts that begin with `<s>` and are padded with 1 on the right.

        Dropout is on if the random stream `dropout` is given: `apply(..., rngs={"dropout": key})`.
        """
        x = self.encoder(self._input(source), keys_that_count(source))
        hidden = jnp.tanh(self.head_dense(x[:, 0]))
        return self.head_output(hidden)

    def _input(self, source: Int[AnyArray, "batch length"]) -> Float[Array, "batch length d"]:
        """Embeddings plus positions. With a position table, embeddings are not scaled: RoBERTa trained the table that way."""
        table, places = self.source_embedding(), positions(source)
        if self.config.positions == "frozen":
            x = table[source] + self.position_embedding()[places]
        else:
            x = embed(table, source) + position_table(source.shape[1], table.shape[1])[places]
        if self.config.embedding_norm:
            x = self.embedding_norm(x)
        self.sow("intermediates", "input", x)
        return self.drop(x.astype(self.config.dtype))
