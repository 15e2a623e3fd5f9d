"""What is trained beside the mask of a matrix, for each depth: gains, and an adapter of low rank.

The matrix of a depth is G ⊙ W ⊙ M + Aᵀ B. G has a factor for each column: how much an output counts at this depth, which a mask cannot
tell. A and B have few rows (Hu et al. 2021, arXiv 2106.09685). B is 0 at the start, and G is 1.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

COLUMNS = "column_gain"
GAINS = {"none": (), "columns": (COLUMNS,)}  # by the values of `model.gains`
ADAPTERS = ADAPTER_IN, ADAPTER_OUT = "adapter_in", "adapter_out"  # A and B
BESIDE = (COLUMNS, *ADAPTERS)


def with_beside(
    matrix: Float[Array, "*layers rows columns"], own: Mapping[str, Any]
) -> Float[Array, "*depths rows columns"]:
    """`matrix` with what `own` has of these, with an axis for the depths or without.

    First it is multiplied by the gains [*depths, columns]. Then the product of the adapter's matrices [*depths, rank, rows] and
    [*depths, rank, columns] is added.
    """
    if COLUMNS in own:
        matrix = matrix * own[COLUMNS][..., None, :]
    if ADAPTER_IN not in own:
        return matrix
    added = jnp.einsum("...ri,...ro->...io", own[ADAPTER_IN], own[ADAPTER_OUT], precision=lax.Precision.HIGHEST)
    return matrix + added
