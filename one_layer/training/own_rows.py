"""Gradients on many devices: each sums those of its own rows, over all micro-batches of an update, before anything travels.

Then every device gets the sum of the part that it stores, in float32. Left to XLA, gradients would travel in every micro-batch; that of a
table which is looked up and multiplied with, twice; and on TPUs in the type of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Int

from one_layer.models.sharding import DATA, MODEL, Devices
from one_layer.training.row_keys import of_rows

Tree = Any
Gradients = Callable[[Tree, Tree, dict[str, Array], Array], tuple[Tree, dict[str, Array]]]


def on_own_rows(devices: Devices, gradients: Gradients) -> Gradients:
    """`gradients` (trained, fixed, batch, key) -> (gradients, sums), computed by each part of `mesh.data` for its rows, and then summed.

    All that `gradients` returns must be a sum over rows. The gradients come out where `Devices.stored` says.
    """
    parts, model = devices.mesh.shape[DATA], devices.mesh.shape[MODEL]
    if parts == 1:
        return gradients

    def shared_out(variables: Tree) -> Tree:
        # Where they are stored would otherwise decide how the computation shares out its activations over `model`.
        if model == 1:
            return variables
        specs = jax.tree.map(lambda place: place.spec, devices.computing_tree(variables))
        return jax.lax.with_sharding_constraint(variables, specs)

    def of_part(trained: Tree, fixed: Tree, batch: dict[str, Array], words: Array, part: Int[Array, "1"]) -> Any:
        key = of_rows(jax.random.wrap_key_data(words), part[0])
        found, sums = gradients(shared_out(trained), shared_out(fixed), batch, key)
        return jax.tree.map(lambda leaf: leaf[None], (shared_out(found), sums))

    own = jax.shard_map(
        of_part,
        mesh=devices.mesh,
        in_specs=(P(), P(), P(None, DATA), P(), P(DATA)),
        out_specs=P(DATA),
        axis_names={DATA, MODEL} if model == 1 else {DATA},
        check_vma=False,  # with its checks, JAX would sum the gradients of what all devices hold in every micro-batch
    )

    def whole(trained: Tree, fixed: Tree, batch: dict[str, Array], key: Array) -> tuple[Tree, dict[str, Array]]:
        by_part = own(trained, fixed, batch, jax.random.key_data(key), jnp.arange(parts))
        found, sums = jax.tree.map(lambda leaf: leaf.sum(axis=0), by_part)
        return jax.lax.with_sharding_constraint(found, devices.stored_tree(found)), sums

    return whole
