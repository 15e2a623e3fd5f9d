"""The share of all mask bits that changed since the evaluation before."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int8

from one_layer.layers.materializing import ONE_AFTER_THE_OTHER, Selecting, select
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask

Masks = dict[str, Int8[Array, "*layers rows columns"]]


class Flips:
    """Keeps the masks of one evaluation, to compare those of the next one with them. Of a model without masks it knows nothing."""

    def __init__(self, model: ModelConfig, devices: Devices) -> None:
        mask = model.supermask
        self._masked = model.masked
        self._select = jax.jit(partial(masks_of, mask=mask, selecting=devices.selecting(mask)))
        self._masks: Masks = {}

    def keep(self, params: Any) -> None:
        """Keeps the masks of `params`."""
        self._masks = self._select(params) if self._masked else {}

    def since(self, params: Any) -> dict[str, float]:
        """`mask/flips`: the share of the entries in which the masks of `params`, which are kept now, differ from those before.

        Empty if nothing was kept before.
        """
        before = self._masks
        self.keep(params)
        return {"mask/flips": flipped_share(before, self._masks)} if before else {}


def masks_of(params: Any, mask: Supermask, selecting: Selecting = ONE_AFTER_THE_OTHER) -> Masks:
    """Every mask of a model, by the path of its scores."""
    named = {tuple(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
    scores = {path: leaf for path, leaf in named.items() if path[-1] == "scores"}
    return {"/".join(path): entries for path, entries in select(scores, mask, selecting).items()}


def flipped_share(before: Masks, after: Masks) -> float:
    """The share of all entries of masks that differ, in [0, 1]."""
    return sum(map(int, _flips(before, after))) / sum(mask.size for mask in before.values())


@jax.jit
def _flips(before: Masks, after: Masks) -> list[Int[Array, ""]]:
    # One program: on many devices every sum is an exchange, and a row of small programs with exchanges can stop a CPU for ever.
    return [jnp.sum(mask != after[name], dtype=jnp.int32) for name, mask in before.items()]
