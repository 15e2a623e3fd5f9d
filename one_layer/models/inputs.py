"""Inputs of a model's first layer: the positions of tokens, and which tokens are pads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.matrix import embed, sinusoids

AnyArray = Array | np.ndarray


def positions(tokens: Int[AnyArray, "batch length"]) -> Int[Array, "batch length"]:
    """The position of every token: PAD + 1, PAD + 2, ... over the tokens that are not pads, and PAD for a pad on either side."""
    real = jnp.asarray(tokens) != PAD
    return jnp.cumsum(real, axis=1) * real + PAD


def embedded(
    table: Float[Array, "vocab d"],
    tokens: Int[AnyArray, "batch length"],
    places: Int[Array, "..."],
    longest: int,
    rotary: bool = False,
    learned: Float[Array, "positions d"] | None = None,
) -> Float[Array, "batch length d"]:
    """Scaled embeddings plus sinusoids at `places` (see `positions`) of at most `longest` tokens; a pad's position is the zero vector.

    With `rotary`, no positions are added, because attention has them. With the table `learned`, its rows are added, and embeddings are
    not scaled: RoBERTa and GPT-2 trained their tables that way.
    """
    if learned is not None:
        return table[tokens] + learned[places]
    x = embed(table, tokens)
    if rotary:
        return x
    rows = sinusoids(longest + PAD + 1, table.shape[1])
    rows[PAD] = 0.0
    return x + jnp.asarray(rows)[places]


def keys_that_count(tokens: Int[AnyArray, "batch length"]) -> Bool[Array, "batch 1 1 length"]:
    """The keys that attention may look at: true except at pads."""
    return (jnp.asarray(tokens) != PAD)[:, None, None, :]
