"""Scores that begin near a trained dense model: the masks whose W ⊙ M is nearest to its matrices (`train.init_scores=nearest`).

The squared distance ||W ⊙ M - V||² is a sum over entries. To keep an entry in place of dropping it lowers this sum by 2 W V - W², and
to give it the sign + in place of - lowers it by 4 W V. So the nearest mask keeps the entries with the largest such benefit. The scores
are those that were drawn, given out anew in the order of the benefit: their distribution, on which the learning rate depends, stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

from one_layer.system.errors import UserError

Matrices = Float32[np.ndarray, "*depths rows columns"]


def nearest_scores(
    weights: Matrices, random: Float32[np.ndarray, "*own rows columns"], drawn: Matrices, selection: str
) -> Matrices:
    """Scores for the `random` weights W, whose mask brings W ⊙ M as near to the `weights` V as it can come.

    `drawn` are the scores that a run draws; each depth has its own. W has no depth axis where the depths share it. `selection` is that
    of the `Supermask`. Raises: UserError for a selection whose mask a threshold decides.
    """
    if selection not in _GIVEN_OUT:
        raise UserError(
            f"train.init_scores is nearest, but with model.selection={selection} a threshold decides how many weights are kept; give "
            f"{', '.join(_GIVEN_OUT)}, or train.init_scores=drawn"
        )
    product = random * weights
    benefit = product if selection == "sign" else 2 * product - np.square(random)
    shape = (-1, drawn.shape[-2] * drawn.shape[-1])
    pairs = zip(drawn.reshape(shape), np.broadcast_to(benefit, drawn.shape).reshape(shape), strict=True)
    return np.stack([_GIVEN_OUT[selection](*pair) for pair in pairs]).reshape(drawn.shape)


def _ordered(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """The `values`, given out so that the largest one lies where `by` is largest; of equal ones the first has less."""
    found = np.empty_like(values)
    found[np.argsort(by, kind="stable")] = np.sort(values)
    return found


_GIVEN_OUT: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # scores and benefits of one matrix to scores
    "magnitude": lambda drawn, benefit: _ordered(np.abs(drawn), benefit),
    "score": _ordered,
    "sign": lambda drawn, benefit: (
        np.where(benefit < 0, np.float32(-1), np.float32(1)) * _ordered(np.abs(drawn), np.abs(benefit))
    ),
}
