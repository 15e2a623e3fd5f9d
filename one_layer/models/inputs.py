"""Inputs of a model's first layer: the positions of tokens, and which tokens are pads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.matrix import sinusoids

AnyArray = Array | np.ndarray


def positions(tokens: Int[AnyArray, "batch length"]) -> Int[Array, "batch length"]:
    """The position of every token: PAD + 1, PAD + 2, ... over the tokens that are not pads, and PAD for a pad on either side."""
    real = jnp.asarray(tokens) != PAD
    return jnp.cumsum(real, axis=1) * real + PAD


def position_table(longest: int, features: int, rotary: bool = False) -> Float[Array, "positions d"]:
    """Sinusoids by position, for sequences of at most `longest` tokens; a pad's position is the zero vector.

    With `rotary`, all are zero, because attention has the positions.
    """
    if rotary:
        return jnp.zeros((longest + PAD + 1, features))
    places = sinusoids(longest + PAD + 1, features)
    places[PAD] = 0.0
    return jnp.asarray(places)


def keys_that_count(tokens: Int[AnyArray, "batch length"]) -> Bool[Array, "batch 1 1 length"]:
    """The keys that attention may look at: true except at pads."""
    return (jnp.asarray(tokens) != PAD)[:, None, None, :]
