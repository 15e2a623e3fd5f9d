"""The classifier: an encoder of one or two texts, and a trained head on its first token (paper A, section 4; Liu et al. 2019).

The text begins with `<s>`. The last hidden vector of this token goes through a dense layer, a tanh and an output layer, as in RoBERTa
(arXiv 1907.11692), with `head_dropout` before both. In a masked model, only the head has trained weights; the encoder is one random
layer under L masks.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Projection
from one_layer.models.encoder import TextEncoder
from one_layer.models.families import label_count
from one_layer.models.inputs import AnyArray


class Classifier(TextEncoder):
    """`apply(variables, source)` gives logits, float32, of the labels."""

    def setup(self) -> None:
        super().setup()
        c = self.config
        self.head_drop = Drop(c.head_dropout)
        self.head_dense = Projection(c.d_model, "trained", c.supermask, True, c.dtype)
        # float32, because logits rounded to bfloat16 are often equal, and the first label would win the tie.
        self.head_output = Projection(label_count(c), "trained", c.supermask, True, "float32")

    def __call__(self, source: Int[AnyArray, "batch length"]) -> Float[Array, "batch labels"]:
        """Logits of texts that begin with `<s>` and are padded with 1 on the right.

        Dropout is on if the random stream `dropout` is given: `apply(..., rngs={"dropout": key})`.
        """
        x = self.encode(self.source_embedding(), source)
        hidden = jnp.tanh(self.head_dense(self.head_drop(x[:, 0])))
        return self.head_output(self.head_drop(hidden))
