"""The encoder layer and the decoder layer, post-LN: LayerNorm(input + block(input)) after every block (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import flax.linen as nn
import jax
from jaxtyping import Array, Bool, Float, Int

from one_layer.errors import UserError
from one_layer.layers.attention import Attention
from one_layer.layers.matrix import NORMS, Drop, Norm, Projection
from one_layer.supermask import Supermask

# gelu in its exact form, with the error function.
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
}


@dataclass(frozen=True)
class LayerSettings:
    """The settings of one Transformer layer.

    `kind`: the matrices are `masked` (random, under `mask`) or `trained`. `norm`: LayerNorm is `plain`, `affine` (trained scale and
    shift) or `frozen` (fixed scale and shift). `dropout` acts after every block, `attention_dropout` on attention weights, and
    `activation_dropout` inside the feed-forward network. `dtype` is the type that the layer computes in.

    Raises: UserError for an invalid value; it names the config key.
    """

    d_model: int
    ffn: int
    heads: int
    kind: str
    mask: Supermask
    bias: bool = False
    norm: str = "plain"
    activation: str = "relu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        known = {"norm": NORMS, "activation": tuple(_ACTIVATIONS), "dtype": ("float32", "bfloat16")}
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise UserError(f"model.{name} is {getattr(self, name)!r}; known are {', '.join(values)}")
        for name in ("d_model", "ffn", "heads"):
            if getattr(self, name) < 1:
                raise UserError(f"model.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"model.{name} is {getattr(self, name)}; it must lie in [0, 1)")
        if self.d_model % self.heads:
            raise UserError(f"model.heads is {self.heads}, which does not divide model.d_model {self.d_model}")
        if self.d_model % 2 or self.d_model < 4:
            raise UserError(f"model.d_model is {self.d_model}; sinusoidal positions need an even width of at least 4")


class Layer(nn.Module):
    """What the encoder's and the decoder's layer have in common."""

    settings: LayerSettings

    def _attention(self, name: str) -> Attention:
        s = self.settings
        return Attention(s.heads, s.kind, s.mask, s.bias, s.attention_dropout, s.dtype, name=name)

    def _feed_forward(self, x: Float[Array, "batch length d"]) -> Float[Array, "batch length d"]:
        s = self.settings

        def projection(features: int, name: str) -> Projection:
            return Projection(features, s.kind, s.mask, s.bias, s.dtype, name=name)

        hidden = _ACTIVATIONS[s.activation](projection(s.ffn, "ffn_in")(x))
        hidden = Drop(s.activation_dropout)(hidden)
        return projection(s.d_model, "ffn_out")(hidden)

    def _add(
        self,
        name: str,
        x: Float[Array, "batch length d"],
        y: Float[Array, "batch length d"],
    ) -> Float[Array, "batch length d"]:
        """LayerNorm(x + dropout(y))."""
        y = Drop(self.settings.dropout)(y)
        return Norm(self.settings.norm, self.settings.dtype, name=name)(x + y)


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network."""

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "batch length d"],
        visible: Bool[Array, "batch 1 1 length"],
    ) -> Float[Array, "batch length d"]:
        """`visible` is false at the pads: their outputs are computed, but no query attends to them."""
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
        """`past` says which target positions a query sees, and `visible` which source positions; see `Attention` for the rest."""
        attended = self._attention("self_attention")(x, x, past, position)
        x = self._add("self_attention_norm", x, attended)
        x = self._add("cross_attention_norm", x, self._attention("cross_attention")(x, encoded, visible))
        return self._add("ffn_norm", x, self._feed_forward(x))
