"""The trained parts of a model's parameters, and those that are frozen (see `one_layer.layers.freezing`).

Frozen parts are not differentiated, and the optimiser has no state for them. In a stack, an array holds all layers; if only some of them
are trained, the rows of these are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from one_layer.layers.beside import BESIDE
from one_layer.layers.freezing import STACKS, WORDS, means, names, words
from one_layer.layers.groups import has_layer_axis
from one_layer.layers.trees import Path, Shape, Variables, flatten_dict, unflatten_dict
from one_layer.models.config import ModelConfig
from one_layer.models.weights import shapes
from one_layer.system.errors import UserError


@dataclass(frozen=True)
class TrainedParts:
    """`rows` has the trained arrays by path in `params`: None for all of an array, or the places of its trained layers."""

    rows: dict[Path, list[int] | None]
    shapes: dict[Path, Shape]

    @classmethod
    def of(cls, config: ModelConfig) -> TrainedParts:
        """The trained parts of a model. Raises: UserError for a name that no part has, and if nothing is trained."""
        every = _params(config)
        if config.train_only or config.freeze:
            _check_names(config, every)
        rows = _trained_rows(config, every)
        if every and not rows:
            raise UserError(
                f"optim.train_only is {config.train_only!r:.200} and optim.freeze is {config.freeze!r:.200}, which leave nothing to "
                "train; freeze fewer parts"
            )
        return cls(rows, {path: _of_rows(every[path], places) for path, places in rows.items()})

    def pick(self, params: Variables) -> Variables:
        """The trained parts of `params`: what the optimiser sees."""
        flat = flatten_dict(params)
        return unflatten_dict(
            {path: flat[path] if rows is None else flat[path][np.array(rows)] for path, rows in self.rows.items()}
        )

    def put(self, trained: Variables, params: Variables) -> Variables:
        """`params` with these trained parts in place of its own."""
        flat, new = flatten_dict(params), flatten_dict(trained)
        for path, rows in self.rows.items():
            flat[path] = new[path] if rows is None else flat[path].at[np.array(rows)].set(new[path])
        return unflatten_dict(flat)

    def apart(self, variables: Variables, fixed: Iterable[str]) -> tuple[Variables, Variables]:
        """Splits the variables of a model, also `materialized` ones: those that depend on trained parts, and the others.

        `fixed` are the collections in which nothing does.
        """
        others = {name: variables[name] for name in fixed}
        depending = {name: tree for name, tree in variables.items() if name not in others}
        flat = flatten_dict(depending)
        held = {path: flat.pop(path) for path in list(flat) if not self.rows.keys() & self._sources(path)}
        return unflatten_dict(flat), {**others, **unflatten_dict(held)}

    def together(self, depending: Variables, others: Variables) -> Variables:
        """Undoes `apart`."""
        whole = unflatten_dict(flatten_dict(depending) | flatten_dict(others))
        return {name: whole.get(name, {}) for name in ("params", *depending, *others)}

    def _sources(self, path: Path) -> set[Path]:
        """The paths in `params` of the arrays that a variable is or was made of."""
        if path[0] != "materialized":
            return {path[1:]}
        return {(*path[1:-1], name) for name in ("scores", "kernel", *BESIDE)}


def count_trained(config: ModelConfig) -> int:
    """How many parameters training changes."""
    every = _params(config)
    return sum(math.prod(_of_rows(every[path], places)) for path, places in _trained_rows(config, every).items())


def _params(config: ModelConfig) -> dict[Path, Shape]:
    return {path[1:]: shape for path, shape in shapes(config).items() if path[0] == "params"}


def _trained_rows(config: ModelConfig, every: dict[Path, Shape]) -> dict[Path, list[int] | None]:
    """The trained arrays: None for all of an array, or the places of its trained layers."""
    rows: dict[Path, list[int] | None] = {}
    for path, shape in every.items():
        trained = [config.freezing.trains(words(path, number)) for number in _numbers(config, path, shape)]
        if any(trained):
            rows[path] = None if all(trained) else [place for place, each in enumerate(trained) if each]
    return rows


def _of_rows(shape: Shape, places: list[int] | None) -> Shape:
    return shape if places is None else (len(places), *shape[1:])


def _numbers(config: ModelConfig, path: Path, shape: Shape) -> list[int] | list[None]:
    """The numbers, from 1, of the layers that an array holds; [None] if it belongs to no single layer."""
    if path[0] not in STACKS or not has_layer_axis(path[-1], shape):
        return [None]
    letter = next(group.letter for group in config.stack(path[0]).groups if group.name == path[1])
    return [place for place, each in enumerate(config.strings[path[0]], 1) if each == letter]


def _check_names(config: ModelConfig, every: dict[Path, Shape]) -> None:
    known = {words(path, number) for path, shape in every.items() for number in _numbers(config, path, shape)}
    for key in ("train_only", "freeze"):
        for name in names(getattr(config, key)):
            if not any(means(name, each) for each in known):
                raise UserError(
                    f"optim.{key} is {getattr(config, key)!r:.200}, but no trained part of this model is {name!r:.60}; known are "
                    f"{_describe(known)}"
                )


def _describe(known: set[frozenset[str]]) -> str:
    """The names that parts with these words have, with examples if some arrays belong to one layer."""
    named = [word for word in WORDS if any(word in each for each in known)]
    layers = [f"{stack}.{word}" for stack in STACKS for each in known if {stack, "ffn"} <= each for word in each]
    if layer := max((name for name in layers if name[-1].isdecimal()), default=""):
        named += [f"a layer such as {layer}", f"words joined by dots such as {layer}.ffn"]
    return ", ".join(named)
