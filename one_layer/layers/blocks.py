"""The encoder layer and the decoder layer: blocks, each with a residual connection and a LayerNorm.

Post-LN is LayerNorm(x + block(x)) (Vaswani et al. 2017; paper A). Pre-LN is x + block(LayerNorm(x)) (arXiv 2012.15045, section 2).
"""

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from one_layer.layers.attention import Attention
from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Norm, Projection
from one_layer.layers.products import read_by_several
from one_layer.layers.reservoirs import Convolution, Recurrence
from one_layer.layers.settings import ACTIVATIONS, LayerSettings

Block = Callable[[Array], Array]


class Layer(nn.Module):
    """What the encoder's and the decoder's layer have in common."""

    settings: LayerSettings

    def _attention(self, name: str) -> Attention:
        s = self.settings
        rotary_base = s.rotary_base if s.modern else 0.0
        return Attention(s.heads, s.kind, s.mask, s.bias, s.attention_dropout, s.dtype, rotary_base, name=name)

    def _feed_forward(self, x: Float[Array, "batch length d"]) -> Float[Array, "batch length d"]:
        s = self.settings

        def projection(features: int, name: str) -> Projection:
            return Projection(features, s.kind, s.mask, s.bias, s.dtype, name=name)

        if s.modern:
            x = read_by_several(x)
            hidden = jax.nn.silu(projection(s.ffn, "ffn_gate")(x)) * projection(s.ffn, "ffn_in")(x)
        else:
            hidden = ACTIVATIONS[s.activation](projection(s.ffn, "ffn_in")(x))
        hidden = Drop(s.activation_dropout)(hidden)
        return projection(s.d_model, "ffn_out")(hidden)

    def _add(self, name: str, x: Float[Array, "batch length d"], block: Block) -> Float[Array, "batch length d"]:
        """`block` with dropout, its residual connection and its LayerNorm, whose module is `name`."""
        s = self.settings
        norm = Norm(s.norm, s.dtype, s.norm_epsilon, name=name)
        y = block(norm(x) if s.norm_position == "pre" else x)
        y = x + Drop(s.dropout)(y)  # made after the modules of the block: its random stream depends on their number
        return y if s.norm_position == "pre" else norm(y)

    def _reservoir(
        self, x: Float[Array, "batch length d"], real: Bool[Array, "#batch length"], stepping: bool = False
    ) -> Float[Array, "batch length d"]:
        """A layer without attention. `real` is false at pads. `stepping`: the axis `length` runs over the beams of one position."""
        s = self.settings
        if s.block == "gru":
            gru = Recurrence(s.kind, s.mask, s.dtype, s.both_ways, name="gru")
            return self._add("gru_norm", x, lambda x: gru(x, real, stepping))
        if s.block == "conv":
            conv = Convolution(s.kind, s.mask, s.dtype, s.heads, s.both_ways, name="conv")
            return self._add("conv_norm", x, lambda x: conv(x, real, stepping))
        return self._add("ffn_norm", x, self._feed_forward)


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network; or another block."""

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch length d"], visible: Bool[Array, "batch 1 1 length"]
    ) -> Float[Array, "batch length d"]:
        """`visible` is false at the pads: their outputs are computed, but no query attends to them."""
        if self.settings.block != "transformer":
            return self._reservoir(x, visible[:, 0, 0])
        attention = self._attention("self_attention")
        x = self._add("self_attention_norm", x, lambda x: attention(x, x, visible))
        return self._add("ffn_norm", x, self._feed_forward)


class DecoderLayer(Layer):
    """Self-attention to the past, attention to the encoded source if there is one, then the feed-forward network; or another block."""

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "rows length d"],
        encoded: Float[Array, "batch source d"] | None,
        past: Bool[Array, "*blocks #rows 1 #length keys"],
        visible: Bool[Array, "batch 1 1 source"] | None,
        position: Int[Array, ""] | None,
    ) -> Float[Array, "rows length d"]:
        """`past` says which target positions a query sees, and `visible` which source positions; see `Attention` for the rest.

        Without `visible` there is no source: a decoder alone.
        """
        if self.settings.block != "transformer":
            # The last query sees all but pads.
            real = past[:, 0, -1] if position is None else jnp.ones((1, x.shape[1]), bool)
            return self._reservoir(x, real, stepping=position is not None)
        to_itself = self._attention("self_attention")
        to_source = (
            None if visible is None else partial(self._attention("cross_attention"), source=encoded, visible=visible)
        )
        x = self._add("self_attention_norm", x, lambda x: to_itself(x, x, past, position))
        if to_source is not None:
            x = self._add("cross_attention_norm", x, to_source)
        return self._add("ffn_norm", x, self._feed_forward)
