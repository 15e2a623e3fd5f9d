"""Trees of arrays that must be the same."""

from typing import Any

import jax
import numpy as np


def same_bits(tree: Any, other: Any) -> None:
    """Asserts that two trees have the same structure, types, shapes and bits: a -0 is no 0."""
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for x, y in zip(map(np.asarray, jax.tree.leaves(tree)), map(np.asarray, jax.tree.leaves(other)), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
