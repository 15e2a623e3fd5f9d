"""The arrays of several runs along a first axis, and the program that does one update of all of them, on one device."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Shaped

from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.runs.records import flatten
from one_layer.runs.settings import OptimConfig, RunConfig
from one_layer.tasks.losses import Distil
from one_layer.training.course import Request
from one_layer.training.meter import Clock
from one_layer.training.optimizer import optimizer
from one_layer.training.plan import keeps_loops
from one_layer.training.programs import INPUTS, PACE
from one_layer.training.step import update
from one_layer.training.trainer import Trainer

Tree = Any
Numbers = dict[str, Shaped[Array | np.ndarray, "*members"]]
_TREES = ("params", "moments", "fixed")


class Stack:
    """The arrays `params`, `moments` and `fixed` of runs that one program can train, in the order of these runs."""

    def __init__(self, runs: Sequence[Trainer]) -> None:
        first = runs[0]
        self._size = len(runs)
        self._trees = {name: jax.tree.map(_stacked, *(getattr(each, name) for each in runs)) for name in _TREES}
        self._numbers = differing([each.run for each in runs])
        self._paces = np.stack([each.pace for each in runs])
        self._step = jax.jit(jax.vmap(_step(first.run, first.model, first.updates)), donate_argnums=(2, 3))
        self._compiled: set[tuple[int, ...]] = set()
        self._one = jax.jit(_one)

    def of(self, name: str, place: int) -> Tree:
        """A copy of the arrays `name` of the run at `place`."""
        return self._one(self._trees[name], place)

    def update(self, requests: Mapping[int, Request], clock: Clock) -> list[dict[str, Any]]:
        """Does these updates, by place; their batches have the same shape. The arrays of all other runs stay as they are.

        The `clock` stops while a program is compiled.

        Returns: what the update of each place reports. Reading one of the numbers waits until the update is computed.
        """
        given = self._arguments(requests)
        (batch, _), *_ = requests.values()
        if (shape := batch["source"].shape) not in self._compiled:
            with clock.stopped():
                self._step.lower(*given).compile()
            self._compiled.add(shape)
        self._trees["params"], self._trees["moments"], sums = self._step(*given)
        return [{name: _Element(array, place) for name, array in sums.items()} for place in range(self._size)]

    def _arguments(self, requests: Mapping[int, Request]) -> tuple[Any, ...]:
        """What the program takes. A place without a request is given another one's, and is not active."""
        filling = next(iter(requests.values()))
        each = [requests.get(place, filling) for place in range(self._size)]
        batch = {name: np.stack([one[name] for one, _ in each]) for name in filling[0]}
        active = np.array([place in requests for place in range(self._size)])
        counts = np.array([number for _, number in each], np.int32)
        return (self._numbers, active, *(self._trees[name] for name in _TREES), batch, counts, self._paces)


class _Element:
    """One number of a device's array, all of which is fetched once when the first of its numbers is read."""

    def __init__(self, array: Array, place: int) -> None:
        self._array, self._place = array, place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(np.asarray(self._array)[self._place], dtype)


def differing(runs: Sequence[RunConfig]) -> Numbers:
    """The numbers but the pace in which the runs differ, by dotted names. All others are constants of the program."""
    values = [flatten(run.raw) for run in runs]
    found: Numbers = {}
    for name in (each for each in INPUTS if each not in PACE):
        numbers = [each[name] for each in values]
        if len(set(numbers)) > 1:
            found[name] = np.array(numbers, np.uint32 if name == "seed" else np.float32)
    return found


def _step(run: RunConfig, model: ModelConfig, updates: int) -> Callable[..., Any]:
    """The update of a member (numbers, active, params, moments, fixed, batch, number, pace) -> (params, moments, sums).

    It is made from the config of one member, with an input in the place of each of the `numbers`.
    """
    devices = Devices.holding(())

    def one(numbers: Numbers, active: Bool[Array, ""], *rest: Any) -> Any:
        optim = _with_inputs(run.optim, numbers)
        given: dict[str, Any] = {"seed": run.seed, "model.keep": model.keep, **numbers}
        step = update(
            run.task,
            model,
            optimizer(optim),
            replace(model.supermask, keep=given["model.keep"]),
            optim.label_smoothing,
            given["seed"],
            devices,
            Distil.of(run.train),
            keeps_loops(run.train, updates),
            optim.softness,
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


def _stacked(*leaves: Any) -> Array:
    return jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]))


def _one(tree: Tree, place: Any) -> Tree:
    return jax.tree.map(partial(jax.lax.dynamic_index_in_dim, index=place, keepdims=False), tree)
