"""The share of all mask bits that changed since the evaluation before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt8

from one_layer.layers.materializing import ONE_AFTER_THE_OTHER, Selecting, select
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask


class Flips:
    """Keeps the masks of one evaluation, to compare those of the next one with them. Of a model without masks it knows nothing."""

    def __init__(self, model: ModelConfig, devices: Devices) -> None:
        mask = model.supermask
        self._masked = model.masked
        self._pack = jax.jit(partial(packed_masks, mask=mask, selecting=devices.selecting(mask)))
        self._masks: Masks = {}

    def keep(self, params: Any) -> None:
        """Keeps the masks of `params`."""
        self._masks = self._pack(params) if self._masked else {}

    def since(self, params: Any) -> dict[str, float]:
        """`mask/flips`: the share of the entries in which the masks of `params`, which are kept now, differ from those before.

        Empty if nothing was kept before.
        """
        before = self._masks
        self.keep(params)
        return {"mask/flips": flipped_share(before, self._masks)} if before else {}


@partial(jax.tree_util.register_dataclass, data_fields=["bits", "others"], meta_fields=["count"])
@dataclass(frozen=True, eq=False)
class PackedMask:
    """Where the masks of all layers of a matrix are above 0; `others`: below 0 if they have a sign, and above 1, 2, ... if they have coats.

    The masks have `count` entries. The bits of each column are padded to whole bytes.
    """

    bits: UInt8[Array, "*layers bytes columns"]
    others: tuple[UInt8[Array, "*layers bytes columns"], ...]
    count: int


Masks = dict[str, PackedMask]


def packed_masks(params: Any, mask: Supermask, selecting: Selecting = ONE_AFTER_THE_OTHER) -> Masks:
    """Every mask of a model, by the path of its scores. Layers are packed separately."""
    named = {tuple(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
    scores = {path: leaf for path, leaf in named.items() if path[-1] == "scores"}

    def packed(entries: Array) -> PackedMask:
        others = [entries < 0] if "sign" in mask.kinds else []
        others += [entries > below for below in range(1, mask.coats)]
        first, *more = (jnp.packbits(each, axis=-2) for each in (entries > 0, *others))
        return PackedMask(first, tuple(more), entries.size)

    return {"/".join(path): packed(entries) for path, entries in select(scores, mask, selecting).items()}


def flipped_share(before: Masks, after: Masks) -> float:
    """The share of all entries of masks that differ, in [0, 1]. Padding bits do not count."""
    flips = [int(number) for number in _flips(before, after)]
    return sum(flips) / sum(mask.count for mask in before.values())


@jax.jit
def _flips(before: Masks, after: Masks) -> list[Int[Array, ""]]:
    # One program: on many devices every sum is an exchange, and a row of small programs with exchanges can stop a CPU for ever.
    def differing(one: PackedMask, other: PackedMask) -> UInt8[Array, "*layers bytes columns"]:
        bits = one.bits ^ other.bits
        for ours, theirs in zip(one.others, other.others, strict=True):
            bits |= ours ^ theirs
        return bits

    flips = [jnp.bitwise_count(differing(mask, after[name])) for name, mask in before.items()]
    return [jnp.sum(each, dtype=jnp.int32) for each in flips]
