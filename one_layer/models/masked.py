"""The masked language model: an encoder, and a head that predicts the tokens at some of its places (Liu et al. 2019, arXiv 1907.11692).

The head is RoBERTa's: a dense layer, GELU, LayerNorm, and the embedding as the output projection, with a bias, and no dropout. In a
masked model, only the head has trained weights, apart from the embedding, which is the encoder's.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.matrix import Norm, Projection
from one_layer.layers.products import by_class, product
from one_layer.models.encoder import TextEncoder
from one_layer.models.inputs import AnyArray


class Bias(nn.Module):
    """A trained vector."""

    features: int

    @nn.compact
    def __call__(self) -> Float[Array, " features"]:
        return jnp.asarray(self.param("bias", nn.initializers.zeros, (self.features,)))


class MaskedModel(TextEncoder):
    """`apply(variables, source, places)` gives logits, float32, of the tokens at some places of every row."""

    def setup(self) -> None:
        super().setup()
        c = self.config
        self.head_dense = Projection(c.d_model, "trained", c.supermask, True, c.dtype)
        self.head_dense_norm = Norm("affine", c.dtype, c.norm_epsilon)
        self.head_output = Bias(c.source_vocab)

    def __call__(
        self, source: Int[AnyArray, "batch length"], places: Int[AnyArray, "batch places"]
    ) -> Float[Array, "batch places vocab"]:
        """Only the wanted `places` go through the head, because the output projection is the larger part of a small model's work.

        Dropout is on if the random stream `dropout` is given: `apply(..., rngs={"dropout": key})`.
        """
        table = self.source_embedding()
        x = self.encode(table, source)
        x = jnp.take_along_axis(x, jnp.asarray(places)[..., None], axis=1)
        x = self.head_dense_norm(jax.nn.gelu(self.head_dense(x), approximate=False))
        logits = by_class(product("bpd,vd->bpv", x, table, x.dtype))
        return logits + self.head_output()
