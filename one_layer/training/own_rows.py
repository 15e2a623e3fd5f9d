"""Gradients on many devices: each sums those of its own rows, over all micro-batches of an update, before anything travels.

Then every device gets the sum of the part that it stores, in float32. Left to XLA, gradients would travel in every micro-batch; that of a
table which is looked up and multiplied with, twice; and on TPUs in the type of the products.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Int

from one_layer.layers.products import shared_out
from one_layer.models.sharding import DATA, MODEL, Devices
from one_layer.training.row_keys import of_rows

Tree = Any
Gradients = Callable[[Tree, Tree, dict[str, Array], Array], tuple[Tree, dict[str, Array]]]


def on_own_rows(devices: Devices, gradients: Gradients, separate: bool) -> Gradients:
    """`gradients` (trained, fixed, batch, key) -> (gradients, sums), computed by each part of `mesh.data` for its rows, and then summed.

    All that `gradients` returns must be a sum over rows. The gradients come out where `Devices.stored` says. If they need more than their
    own rows (not `separate`), XLA shares out the rows.
    """
    parts, model = devices.mesh.shape[DATA], devices.mesh.shape[MODEL]
    separate = separate and parts > 1
    if model > 1:
        gradients = _shared_out(devices, gradients, separate)
    if not separate:
        return gradients

    def of_part(trained: Tree, fixed: Tree, batch: dict[str, Array], words: Array, part: Int[Array, "1"]) -> Any:
        found = gradients(trained, fixed, batch, of_rows(jax.random.wrap_key_data(words), part[0]))
        return jax.tree.map(lambda leaf: leaf[None], found)

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


def _shared_out(devices: Devices, gradients: Gradients, separate: bool) -> Gradients:
    """`gradients`, of variables that lie as `Devices.computing` says.

    Where they are stored would otherwise decide how the computation shares out its activations over `model`.
    """

    def placed(variables: Tree) -> Tree:
        places = devices.computing_tree(variables)
        if separate:  # inside a part of `data`, XLA knows the axis `model` alone
            places = jax.tree.map(lambda place: place.spec, places)
        return jax.lax.with_sharding_constraint(variables, places)

    def by_last_axis(array: Array) -> Array:
        spec = P(None if separate else DATA, *[None] * (array.ndim - 2), MODEL)
        return jax.lax.with_sharding_constraint(array, spec if separate else NamedSharding(devices.mesh, spec))

    def shared(trained: Tree, fixed: Tree, batch: dict[str, Array], key: Array) -> tuple[Tree, dict[str, Array]]:
        with shared_out(by_last_axis):
            found, sums = gradients(placed(trained), placed(fixed), batch, key)
        return placed(found), sums

    return shared
