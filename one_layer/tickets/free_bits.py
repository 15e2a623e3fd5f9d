"""Masks of which the seed settles a share of the weights: a file holds the bits of the free weights alone.

The bits of the free weights follow each other in C order, as if there were no others. Which weights are free, the seed says
(`one_layer.initializers.Settled`).
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Int8, UInt8

from one_layer.models import ModelConfig
from one_layer.models.weights import roles, settled
from one_layer.system.errors import UserError

Path = tuple[str, ...]
Masks = dict[Path, UInt8[np.ndarray, "..."]]


def free_bits(masks: Masks, config: ModelConfig, seed: int) -> Masks:
    """The bits of the free weights, of the kinds that a file has (`Supermask.free_kinds`).

    Raises: UserError for a mask that drops a locked weight, or keeps a pruned one.
    """
    if not config.supermask.settles:
        return masks
    found: Masks = {}
    for module, settling in settled(config).items():
        fixed = settling.draw(seed)
        own = {kind: masks[*module, kind] for kind in config.supermask.kinds}
        kinds = {kind: _taken(own[kind], fixed) for kind in config.supermask.free_kinds}
        whole = _put(kinds, fixed)
        if any(not np.array_equal(whole[kind], bits) for kind, bits in own.items()):
            raise UserError(
                f"the mask of {roles(config)[module]} drops weights that the seed {seed} locks, or keeps pruned ones; give masks that "
                "differ from the model's own in free weights alone"
            )
        found |= {(*module, kind): bits for kind, bits in kinds.items()}
    return found


def all_bits(free: Masks, config: ModelConfig, seed: int) -> Masks:
    """The bits of all weights, of the kinds of `Supermask.kinds`, from those that `free_bits` gives."""
    if not config.supermask.settles:
        return free
    found: Masks = {}
    for module, settling in settled(config).items():
        kinds = {kind: free[*module, kind] for kind in config.supermask.free_kinds}
        found |= {(*module, kind): bits for kind, bits in _put(kinds, settling.draw(seed)).items()}
    return found


def _taken(bits: UInt8[np.ndarray, "*layers bytes"], fixed: Int8[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    free = _free(bits, fixed)
    ones = np.unpackbits(bits, axis=-1, count=free.shape[-1], bitorder="little")
    return np.packbits(ones[free].reshape(*bits.shape[:-1], -1), axis=-1, bitorder="little")


def _put(
    kinds: dict[str, UInt8[np.ndarray, "*layers bytes"]], fixed: Int8[np.ndarray, "..."]
) -> dict[str, UInt8[np.ndarray, "..."]]:
    """The bits of all weights of one matrix. The mask of signs alone says what is pruned, which no stored bit does."""
    first = next(iter(kinds.values()))
    free = _free(first, fixed)
    kept = np.broadcast_to((fixed >= 0).reshape(*fixed.shape[:-2], -1), free.shape)
    ones = {"mask": kept.astype(np.uint8)} | {kind: np.zeros(free.shape, np.uint8) for kind in kinds if kind != "mask"}
    for kind, bits in kinds.items():
        each = np.unpackbits(bits, axis=-1, count=int(free.sum(axis=-1).flat[0]), bitorder="little")
        ones[kind][free] = each.reshape(-1)
    return {kind: np.packbits(each, axis=-1, bitorder="little") for kind, each in ones.items()}


def _free(
    bits: UInt8[np.ndarray, "*layers bytes"], fixed: Int8[np.ndarray, "..."]
) -> Bool[np.ndarray, "*layers weights"]:
    """Which weights of each row of bits are free."""
    size = math.prod(fixed.shape[-2:])
    return np.broadcast_to((fixed == 0).reshape(*fixed.shape[:-2], size), (*bits.shape[:-1], size))
