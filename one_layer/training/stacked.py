"""The arrays of several runs along a first axis, and the program that does one update of all of them, on one device or on many."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Bool, Shaped

from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.runs.records import flatten
from one_layer.runs.settings import OptimConfig, RunConfig
from one_layer.tasks.losses import Distil
from one_layer.training.course import Request
from one_layer.training.optimizer import optimizer
from one_layer.training.programs import INPUTS
from one_layer.training.step import update
from one_layer.training.trainer import Trainer

Tree = Any
Numbers = dict[str, Shaped[Array | np.ndarray, "*members"]]
_TREES = ("params", "moments", "fixed")


_MEMBERS = P("members")


class Stack:
    """The arrays `params`, `moments` and `fixed` of runs that one program can train, in the order of these runs."""

    def __init__(self, runs: Sequence[Trainer], devices: Sequence[jax.Device] | None = None) -> None:
        """`devices` are by default all of this process. Places that are left have the arrays of the first run."""
        first, known = runs[0], devices or jax.local_devices()
        self._each, used = places(len(runs), len(known))
        self._devices = known[:used]
        mesh = Mesh(np.array(self._devices), ("members",), axis_types=(AxisType.Auto,))
        self._sharding = NamedSharding(mesh, _MEMBERS)
        filled = [*runs, *[first] * (len(self) - len(runs))]
        self._trees = {name: jax.tree.map(self._stacked, *(getattr(each, name) for each in filled)) for name in _TREES}
        self._numbers = differing([each.run for each in filled])
        self._step = self._jit(_step(first.run, first.model, first.updates))
        self._one = jax.jit(_one)

    def __len__(self) -> int:
        return self._each * len(self._devices)

    def _stacked(self, *leaves: Any) -> Array:
        return jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]), self._sharding)

    def _jit(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Compiles `step`, which is written for one member, for all places. Its params and moments are donated.

        Each device computes its own places, without communication. jit alone, over a sharded axis, would give all devices one condition
        for the loops that select masks, and exchange it in every pass.
        """
        # Everything is different on every device, so there is nothing that check_vma could find; loops that begin with constants fail it.
        apart = jax.shard_map(
            jax.vmap(step), mesh=self._sharding.mesh, in_specs=_MEMBERS, out_specs=_MEMBERS, check_vma=False
        )
        return jax.jit(apart, in_shardings=self._sharding, out_shardings=self._sharding, donate_argnums=(2, 3))

    def of(self, name: str, place: int) -> Tree:
        """A copy of the arrays `name` of the run at `place`, on the first device: there one program evaluates all runs."""
        number, index = divmod(place, self._each)

        def part(leaf: Array) -> Array:
            return next(shard.data for shard in leaf.addressable_shards if shard.device == self._devices[number])

        return jax.device_put(self._one(jax.tree.map(part, self._trees[name]), index), self._devices[0])

    def update(self, requests: Mapping[int, Request]) -> list[dict[str, Any]]:
        """Does these updates, by place; their batches have the same shape. The arrays of all other runs stay as they are.

        Returns: what the update of each place reports. Reading one of the numbers waits until the update is computed.
        """
        self._trees["params"], self._trees["moments"], sums = self._step(*self._arguments(requests))
        return [{name: _Element(array, place) for name, array in sums.items()} for place in range(len(self))]

    def _arguments(self, requests: Mapping[int, Request]) -> tuple[Any, ...]:
        """What the program takes. A place without a request is given another one's, and is not active."""
        filling = next(iter(requests.values()))
        each = [requests.get(place, filling) for place in range(len(self))]
        batch = {name: np.stack([one[name] for one, _ in each]) for name in filling[0]}
        active = np.array([place in requests for place in range(len(self))])
        counts = np.array([number for _, number in each], np.int32)
        return (self._numbers, active, *(self._trees[name] for name in _TREES), batch, counts)


def places(members: int, devices: int) -> tuple[int, int]:
    """How many places there are on each of how many devices: as few as possible on a device, and then as few devices as hold them.

    All devices have the same number, so that none waits for another one.
    """
    each = -(-members // devices)
    return each, -(-members // each)


class _Element:
    """One number of a device's array, all of which is fetched once when the first of its numbers is read."""

    def __init__(self, array: Array, place: int) -> None:
        self._array, self._place = array, place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(np.asarray(self._array)[self._place], dtype)


def differing(runs: Sequence[RunConfig]) -> Numbers:
    """The numbers in which the runs differ, by dotted names. All others are constants of the program."""
    values = [flatten(run.raw) for run in runs]
    found: Numbers = {}
    for name in INPUTS:
        numbers = [each[name] for each in values]
        if len(set(numbers)) > 1:
            found[name] = np.array(numbers, np.uint32 if name == "seed" else np.float32)
    return found


def _step(run: RunConfig, model: ModelConfig, updates: int) -> Callable[..., Any]:
    """The update of a member (numbers, active, params, moments, fixed, batch, number) -> (params, moments, sums).

    It is made from the config of one member, with an input in the place of each of the `numbers`.
    """
    devices = Devices.holding(())

    def one(numbers: Numbers, active: Bool[Array, ""], *rest: Any) -> Any:
        optim = _with_inputs(run.optim, numbers)
        given: dict[str, Any] = {"seed": run.seed, "model.keep": model.keep, **numbers}
        step = update(
            run.task,
            model,
            optimizer(optim, updates),
            replace(model.supermask, keep=given["model.keep"]),
            optim.label_smoothing,
            given["seed"],
            devices,
            Distil.of(run.train),
        )
        return step(*rest, active=active)

    return one


def _with_inputs(config: OptimConfig, numbers: Numbers) -> OptimConfig:
    """`config` with traced numbers. Its checks, which traced numbers would fail, were passed by every member's own config."""
    made = copy.copy(config)
    for name, value in numbers.items():
        section, _, key = name.partition(".")
        if section == "optim":
            object.__setattr__(made, key, value)
    return made


def _one(tree: Tree, place: Any) -> Tree:
    return jax.tree.map(partial(jax.lax.dynamic_index_in_dim, index=place, keepdims=False), tree)
