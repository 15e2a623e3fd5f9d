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
    found: Masks = {}
    for module, size in _sizes(config).items():
        own = {kind: masks[*module, kind] for kind in config.supermask.kinds}
        bits = _nested(own, size)
        counts = config.supermask.bit_counts(size)
        if any(each.shape[-1] != -(-counts[kind] // 8) for kind, each in bits.items()):
            raise UserError(
                f"the coats of {roles(config)[module]} keep other numbers of weights than model.keep and model.coats say; give masks that "
                "keep these"
            )
        found |= {(*module, kind): each for kind, each in bits.items()}
    return found or masks


def all_bits(nested: Masks, config: ModelConfig) -> Masks:
    """The bits of all weights, from those that `nested_bits` gives."""
    found: Masks = {}
    for module, size in _sizes(config).items():
        kinds = {kind: nested[*module, kind] for kind in config.supermask.kinds}
        counts = config.supermask.bit_counts(size)
        found |= {(*module, kind): bits for kind, bits in _whole(kinds, counts).items()}
    return found or nested


def _sizes(config: ModelConfig) -> dict[Path, int]:
    """The number of weights of every matrix whose mask has several coats."""
    known = shapes(config).items() if config.supermask.coats > 1 else ()
    return {path[1:-1]: math.prod(shape[-2:]) for path, shape in known if path[-1] == "scores"}


def _nested(coats: dict[str, Bits], size: int) -> dict[str, Bits]:
    """The bits of each coat where the coat below has ones."""
    found, below = {}, None
    for kind, bits in coats.items():
        ones = np.unpackbits(bits, axis=-1, count=size, bitorder="little").reshape(-1, size)
        rows = [
            row if below is None else row[under == 1]
            for row, under in zip(ones, ones if below is None else below, strict=True)
        ]
        longest = max(map(len, rows))
        padded = np.stack([np.pad(row, (0, longest - len(row))) for row in rows]).reshape(*bits.shape[:-1], longest)
        found[kind] = np.packbits(padded, axis=-1, bitorder="little")
        below = ones
    return found


def _whole(coats: dict[str, Bits], counts: dict[str, int]) -> dict[str, Bits]:
    """Undoes `_nested`; `counts` are the bits of each coat."""
    found, below = {}, None
    for kind, bits in coats.items():
        ones = np.unpackbits(bits, axis=-1, count=counts[kind], bitorder="little")
        if below is not None:
            whole = np.zeros_like(below)
            whole[below == 1] = ones.reshape(-1)
            ones = whole
        found[kind] = np.packbits(ones, axis=-1, bitorder="little")
        below = ones
    return found
