"""The bits of the coats of masks as a file holds them: of a further coat, those of the weights that the coat below keeps.

They follow each other in C order, as if there were no others.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import UInt8

from one_layer.models import ModelConfig, shapes
from one_layer.models.weights import roles
from one_layer.system.errors import UserError

Path = tuple[str, ...]
Masks = dict[Path, UInt8[np.ndarray, "..."]]
Bits = UInt8[np.ndarray, "*layers bytes"]


def nested_bits(masks: Masks, config: ModelConfig) -> Masks:
    """The bits that a file has, from those of all weights.

    Raises: UserError for coats that keep other numbers of weights than the config says.
    """
    found = dict(masks)
    for module, counts in _coats(config):
        below = None
        for kind, count in counts.items():
            ones = np.unpackbits(masks[*module, kind], axis=-1, count=counts["mask"], bitorder="little")
            if below is not None:
                if (below.sum(axis=-1) != count).any():
                    raise UserError(
                        f"the coats of {roles(config)[module]} keep other numbers of weights than model.keep and model.coats say; give "
                        "masks that keep these"
                    )
                found[*module, kind] = _packed(ones[below == 1].reshape(*ones.shape[:-1], count))
            below = ones
    return found


def all_bits(nested: Masks, config: ModelConfig) -> Masks:
    """The bits of all weights, from those that `nested_bits` gives."""
    found = dict(nested)
    for module, counts in _coats(config):
        below = None
        for kind, count in counts.items():
            ones = np.unpackbits(nested[*module, kind], axis=-1, count=count, bitorder="little")
            if below is not None:
                whole = np.zeros_like(below)
                whole[below == 1] = ones.reshape(-1)
                ones = whole
            found[*module, kind] = _packed(ones)
            below = ones
    return found


def _coats(config: ModelConfig) -> list[tuple[Path, dict[str, int]]]:
    """The matrices whose masks have several coats, and how many bits a file has of each."""
    known = shapes(config).items() if config.supermask.coats > 1 else ()
    return [
        (path[1:-1], config.supermask.bit_counts(math.prod(shape[-2:])))
        for path, shape in known
        if path[-1] == "scores"
    ]


def _packed(ones: UInt8[np.ndarray, "*layers bits"]) -> Bits:
    return np.packbits(ones, axis=-1, bitorder="little")
