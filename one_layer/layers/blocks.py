"""The two layers of the Transformer, post-LN: each block's output is added to its input and normalised (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
from jaxtyping import Array, Bool, Float, Int

from one_layer.layers.attention import Attention
from one_layer.layers.matrix import Drop, Norm, Projection
from one_layer.models.config import ModelConfig

# The exact form of gelu, by the error function.
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
}


class Layer(nn.Module):
    """What the encoder's and the decoder's layer have in common."""

    config: ModelConfig

    def _kind(self) -> str:
        return "masked" if self.config.masked else "trained"

    def _attention(self, name: str) -> Attention:
        c = self.config
        return Attention(c.heads, self._kind(), c.supermask, bool(c.bias), c.attention_dropout, c.dtype, name=name)

    def _feed_forward(self, x: Float[Array, "batch length d"]) -> Float[Array, "batch length d"]:
        c = self.config

        def projection(features: int, name: str) -> Projection:
            return Projection(features, self._kind(), c.supermask, bool(c.bias), c.dtype, name=name)

        hidden = _ACTIVATIONS[c.activation](projection(c.ffn, "ffn_in")(x))
        hidden = Drop(c.activation_dropout)(hidden)
        return projection(c.d_model, "ffn_out")(hidden)

    def _add(
        self,
        name: str,
        x: Float[Array, "batch length d"],
        y: Float[Array, "batch length d"],
    ) -> Float[Array, "batch length d"]:
        """LayerNorm(x + dropout(y))."""
        y = Drop(self.config.dropout)(y)
        return Norm(str(self.config.norm), self.config.dtype, name=name)(x + y)


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network."""

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch length d"],
        visible: Bool[Array, "batch 1 1 length"],
    ) -> Float[Array, "batch length d"]:
        """`visible` is false at the pads; they are computed and never attended to."""
        x = self._add("self_attention_norm", x, self._attention("self_attention")(x, x, visible))
        return self._add("ffn_norm", x, self._feed_forward(x))


class DecoderLayer(Layer):
    """Self-attention to the past, attention to the encoded source, then the feed-forward network."""

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "rows length d"],
        encoded: Float[Array, "batch source d"] | None,
        past: Bool[Array, "*blocks #rows 1 #length keys"],
        visible: Bool[Array, "batch 1 1 source"],
        position: Int[Array, ""] | None,
    ) -> Float[Array, "rows length d"]:
        """`past` says which target positions a query sees, `visible` which source positions; see `Attention` for the rest."""
        attended = self._attention("self_attention")(x, x, past, position)
        x = self._add("self_attention_norm", x, attended)
        x = self._add("cross_attention_norm", x, self._attention("cross_attention")(x, encoded, visible))
        return self._add("ffn_norm", x, self._feed_forward(x))
