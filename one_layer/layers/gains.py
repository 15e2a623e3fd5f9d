"""A trained factor for each row or column of a matrix under a mask: G ⊙ W ⊙ M, where G is an outer product of two vectors, or one of them.

Every layer has its own, so they tell apart what a mask cannot: how much an input, or an output, counts at this depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import Array, Float

ROWS, COLUMNS = "row_gain", "column_gain"  # the names of the arrays: of the inputs, and of the outputs
GAINS = {"none": (), "rows": (ROWS,), "columns": (COLUMNS,), "both": (ROWS, COLUMNS)}  # by the values of `model.gains`


def gained(
    matrix: Float[Array, "*layers rows columns"], own: Mapping[str, Any]
) -> Float[Array, "*depths rows columns"]:
    """`matrix`, multiplied by its gains [*layers, rows] and [*layers, columns], as far as `own` has them, in this order."""
    if ROWS in own:
        matrix = matrix * own[ROWS][..., :, None]
    return matrix * own[COLUMNS][..., None, :] if COLUMNS in own else matrix
