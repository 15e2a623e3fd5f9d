"""The bits of masks as a file holds them: those that nothing else says.

If the seed settles weights, a file has the bits of the free ones alone (`one_layer.initializers.Settled`). Of a further coat, it has those
of the weights that the coat below keeps. The bits that it has follow each other in C order, as if there were no others.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Int8, UInt8

from one_layer.models import ModelConfig, shapes
from one_layer.models.weights import roles, settled
from one_layer.system.errors import UserError

Path = tuple[str, ...]
Masks = dict[Path, UInt8[np.ndarray, "..."]]
Bits = UInt8[np.ndarray, "*layers bytes"]


def free_bits(masks: Masks, config: ModelConfig, seed: int) -> Masks:
    """The bits that a file has (`Supermask.free_kinds`), from those of all weights.

    Raises: UserError for a mask that drops a locked weight, or keeps a pruned one, and for coats that keep other numbers of weights than
    the config says.
    """
    found: Masks = {}
    for module, size in _sizes(config).items():
        own = {kind: masks[*module, kind] for kind in config.supermask.kinds}
        bits = _nested(own, size)
        counts = config.supermask.of(module).bit_counts(size)
        if any(each.shape[-1] != -(-counts[kind] // 8) for kind, each in bits.items()):
            raise UserError(
                f"the coats of {roles(config)[module]} keep other numbers of weights than model.keep and model.coats say; give masks that "
                "keep these"
            )
        found |= {(*module, kind): each for kind, each in bits.items()}
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
    return found or masks


def all_bits(free: Masks, config: ModelConfig, seed: int) -> Masks:
    """The bits of all weights, of the kinds of `Supermask.kinds`, from those that `free_bits` gives."""
    found: Masks = {}
    for module, size in _sizes(config).items():
        kinds = {kind: free[*module, kind] for kind in config.supermask.kinds}
        counts = config.supermask.of(module).bit_counts(size)
        found |= {(*module, kind): bits for kind, bits in _whole(kinds, counts).items()}
    for module, settling in settled(config).items():
        kinds = {kind: free[*module, kind] for kind in config.supermask.free_kinds}
        found |= {(*module, kind): bits for kind, bits in _put(kinds, settling.draw(seed)).items()}
    return found or free


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
