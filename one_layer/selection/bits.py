"""Masks as packed bits: in C order, the lowest bit of each byte first; zeros fill the rest of the last byte."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8


def unpack_mask(
    bits: Mapping[str, UInt8[Array | np.ndarray, "*layers bytes"]], shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """Returns the mask that `bits` packs by their kinds (see `Supermask.kinds`), or that of each layer."""
    mask = unpack(bits["mask"], shape) if "mask" in bits else 1.0
    for kind in bits.keys() - {"mask", "sign"}:  # each further coat adds 1
        mask = mask + unpack(bits[kind], shape)
    return mask * (1.0 - 2.0 * unpack(bits["sign"], shape)) if "sign" in bits else jnp.asarray(mask)


def unpack(bits: UInt8[Array | np.ndarray, "*layers bytes"], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Returns the mask of zeros and ones that `bits` packs, or that of each layer."""
    unpacked = jnp.unpackbits(jnp.asarray(bits), axis=-1, count=math.prod(shape), bitorder="little")
    return unpacked.reshape(*bits.shape[:-1], *shape).astype(jnp.float32)
