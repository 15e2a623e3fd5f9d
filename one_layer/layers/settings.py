"""The settings of one layer, and the values that they may have. Nothing here needs Flax, so settings can be read without it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from one_layer.supermask import Supermask

ROTARY_BASE = 10_000.0  # Su et al. 2021, section 3.2.2
NORMS = ("plain", "affine", "frozen", "rms", "rms_plain")  # the kinds of `one_layer.layers.matrix.Norm`
BLOCKS = ("transformer", "ffn", "gru", "conv")  # of which a layer consists; see `one_layer.layers.reservoirs`
GATES = ("reset", "update", "new")  # of a GRU
DIRECTIONS = {True: ("forward", "backward"), False: ("forward",)}  # of a GRU that sees both ways, or not
WIDTH = 7  # positions of a kernel of `conv`
# Attention reads the cache in blocks of this many positions, so a step's cost grows with the tokens written, not with the capacity.
BLOCK = 8


def relu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """max(x, 0), and NaN where x is NaN, on every device.

    This is not written as a maximum: for a float32 product and its maximum with 0, XLA calls a single function of cuBLAS on GPUs, which
    gave 0 for NaN on an H100. Then the logits of a broken model are finite.
    """
    return jnp.where(x <= 0, 0, x)


# gelu is exact, with the error function; gelu_tanh approximates it by tanh, as GPT-2 does.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
}


@dataclass(frozen=True)
class LayerSettings:
    """The settings of one layer.

    `kind`: the matrices are `masked` (random, under `mask`), `trained` or `fixed` (random, never trained). `norm`: LayerNorm is `plain`,
    `affine` (trained scale and shift) or `frozen` (fixed scale and shift); `norm_position` is `post` or `pre`. `dropout` acts after
    every block, `attention_dropout` on attention weights, and `activation_dropout` inside the feed-forward network. `dtype` is the type
    that the layer computes in.

    `block` says what the layer is made of: a `transformer` layer has attention and a feed-forward network. Reservoirs may be another
    block (see `one_layer.layers.reservoirs`): `ffn` alone, `gru`, or `conv`, a convolution. `both_ways`: a `gru` or
    `conv` also sees later positions.

    `modern`: attention to itself has rotary positions (with `rotary_base`), and the feed-forward network is SwiGLU (Shazeer 2020,
    arXiv 2002.05202): (silu(x W_gate) ⊙ x W_in) W_out. Then `activation` has no effect.
    """

    d_model: int
    ffn: int
    heads: int
    kind: str
    mask: Supermask
    bias: bool = False
    norm: str = "plain"
    norm_epsilon: float = 1e-5
    activation: str = "relu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    dtype: str = "float32"
    norm_position: str = "post"
    block: str = "transformer"
    both_ways: bool = True
    modern: bool = False
    rotary_base: float = ROTARY_BASE
