"""Where the members of a population lie: as many on each device as on any other, so that no device waits for another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array

Tree = Any

_MEMBERS = P("members")


@dataclass(frozen=True)
class Places:
    """`each` places on every one of the `devices`, numbered device by device."""

    devices: tuple[jax.Device, ...]
    each: int

    @classmethod
    def of(cls, members: int, devices: Sequence[jax.Device]) -> Places:
        """Places for so many members: as few as possible on a device, and then as few devices as hold them."""
        each = -(-members // len(devices))
        return cls(tuple(devices[: -(-members // each)]), each)

    def __len__(self) -> int:
        return self.each * len(self.devices)

    def filled(self, members: Sequence[Any]) -> list[Any]:
        """The members, and the first one again in each place that is left."""
        return [*members, *[members[0]] * (len(self) - len(members))]

    def stacked(self, *leaves: Any) -> Array:
        """One array for all places, with their axis first, from the array of each place."""
        whole = np.stack([np.asarray(leaf) for leaf in leaves])
        return jnp.asarray(whole) if self._sharding is None else jax.device_put(whole, self._sharding)

    def at(self, tree: Tree, place: int) -> tuple[Tree, int]:
        """The part of stacked arrays that lies on the device of `place`, and the index of the place in this part."""
        if self._sharding is None:
            return tree, place
        number, index = divmod(place, self.each)
        device = self.devices[number]

        def part(leaf: Array) -> Array:
            return next(shard.data for shard in leaf.addressable_shards if shard.device == device)

        return jax.tree.map(part, tree), index

    def on_first(self, tree: Tree) -> Tree:
        """The arrays of one place, which lie on its device, on the first device."""
        return tree if self._sharding is None else jax.device_put(tree, self.devices[0])

    def jit(self, step: Callable[..., Any], donated: tuple[int, ...]) -> Callable[..., Any]:
        """Compiles `step`, which is written for one member, for all places. All arguments and results have their axis first.

        Each device computes its own places, without communication. jit alone, over a sharded axis, would give all devices one condition
        for the loops that select masks, and exchange it in every pass.
        """
        together = jax.vmap(step)
        if self._sharding is None:
            return jax.jit(together, donate_argnums=donated)
        # Everything is different on every device, so there is nothing that check_vma could find; loops that begin with constants fail it.
        apart = jax.shard_map(
            together, mesh=self._sharding.mesh, in_specs=_MEMBERS, out_specs=_MEMBERS, check_vma=False
        )
        return jax.jit(apart, in_shardings=self._sharding, out_shardings=self._sharding, donate_argnums=donated)

    @cached_property
    def _sharding(self) -> NamedSharding | None:
        """None for one device, whose programs and arrays are then as they are without this module."""
        if len(self.devices) == 1:
            return None
        return NamedSharding(Mesh(np.array(self.devices), ("members",), axis_types=(AxisType.Auto,)), _MEMBERS)
