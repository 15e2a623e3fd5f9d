"""What the first layer of a model gets: where tokens stand, and which of them are no pads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.layers.matrix import sinusoids
from one_layer.models.config import ModelConfig
from one_layer.special_tokens import PAD

AnyArray = Array | np.ndarray


def positions(tokens: Int[AnyArray, "batch length"]) -> Int[Array, "batch length"]:
    """Counted over the tokens that are no pads, from PAD + 1; a pad has PAD, whichever side it stands on."""
    real = jnp.asarray(tokens) != PAD
    return jnp.cumsum(real, axis=1) * real + PAD


def position_table(longest: int, features: int) -> Float[Array, "positions d"]:
    """Sinusoids, by position, of sequences of at most `longest` tokens; a pad's position is the zero vector."""
    places = sinusoids(longest + PAD + 1, features)
    places[PAD] = 0.0
    return jnp.asarray(places)


def keys_that_count(tokens: Int[AnyArray, "batch length"]) -> Bool[Array, "batch 1 1 length"]:
    """What attention may look at."""
    return (jnp.asarray(tokens) != PAD)[:, None, None, :]


def kind_of_tables(config: ModelConfig) -> str:
    """The kind, as `one_layer.layers.matrix.matrix` calls it, of what `embedding` says of."""
    return {"masked": "masked", "frozen": "fixed", "trained": "trained"}[str(config.embedding)]
