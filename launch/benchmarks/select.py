"""Compares making a mask by counting with making it by sorting."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from configs.common import SIZES
from launch.benchmarks.workloads import IWSLT14_VOCABULARIES, in_turn
from one_layer.supermask import kept_count, topk_mask


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds to make masks of the shapes of size `size`, compared with masks whose threshold comes from a sort."""
    d, ffn, _, _ = SIZES[size]
    rows = []
    for shape in [(d, d), (d, ffn), (IWSLT14_VOCABULARIES[0], d)]:
        # All magnitudes differ, because the sorting side keeps too many entries at a tie.
        rank = jax.random.permutation(jax.random.key(0), shape[0] * shape[1]).reshape(shape)
        scores = (1 - 2 * (rank % 2)) * (rank + 1) / rank.size
        sides = {"counting": jax.jit(lambda s: topk_mask(s, 0.5)), "sorting": jax.jit(_mask_by_sorting)}
        assert jnp.array_equal(*(side(scores) for side in sides.values())), "the two masks differ"
        seconds = in_turn({name: partial(side, scores) for name, side in sides.items()}, 3 if quick else 15)
        rows.append({"shape": list(shape), **seconds, "ratio": seconds["sorting"] / seconds["counting"]})
    return {"masks": rows}


def _mask_by_sorting(scores: jax.Array) -> jax.Array:
    size = jnp.abs(scores)
    return (size >= jnp.sort(size.reshape(-1))[size.size - kept_count(size.size, 0.5)]).astype(scores.dtype)
