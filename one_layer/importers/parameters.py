"""The parameters of other programs' models: their names and shapes there, and which arrays they are here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.importers.by_layer import Arrays, Path, Variables
from one_layer.layers.trees import unflatten_dict
from one_layer.models import ModelConfig, shapes
from one_layer.system.errors import UserError

StateDict = Mapping[str, Shaped[np.ndarray, "..."]]
Shapes = dict[str, tuple[int, ...]]


class Entry(NamedTuple):
    """A parameter, its shape there, and the path of its array here, without the collection.

    `place`: that of its layer, where the array has one for each layer. `transposed`: there a matrix is [fan_out, fan_in].
    """

    name: str
    shape: tuple[int, ...]
    path: Path
    place: int | None = None
    transposed: bool = False


def of_module(
    name: str,
    module: Path,
    shape: tuple[int, int],
    place: int | None = None,
    *,
    bias: bool = True,
    transposed: bool = True,
) -> Iterator[Entry]:
    """The weight of a module and its bias. `module` tells whether it is a matrix, a norm, or a table, which has no bias.

    `shape`: (fan_out, fan_in), or (rows, d) of a table; of a norm, the first number counts.
    """
    table = module[0].endswith("embedding")
    if module[-1] == "layer_norm":
        yield Entry(f"{name}.weight", shape[:1], (*module, "scale"), place)
    else:
        turned = transposed and not table
        there = shape if turned or table else shape[::-1]
        yield Entry(f"{name}.weight", there, (*module, "kernel"), place, turned)
    if bias and not table:
        yield Entry(f"{name}.bias", shape[:1], (*module, "bias"), place)


def places(config: ModelConfig, stack: str) -> Iterator[tuple[int, Path, int]]:
    """Each layer's number, the path of its group, and its place there."""
    settings = config.stack(stack)
    groups = {group.letter: group.name for group in settings.groups}
    for number, letter in enumerate(settings.pattern):
        yield number, (stack, groups[letter]), settings.pattern[:number].count(letter)


def read(state: StateDict, entries: Iterable[Entry]) -> Arrays:
    """The arrays here, float32, by path. Half precision is converted exactly."""
    layers: dict[Path, list[np.ndarray]] = {}
    found: Arrays = {}
    for each in entries:
        array = np.asarray(state[each.name], np.float32)
        array = array.T if each.transposed else array
        if each.place is None:
            found[each.path] = np.ascontiguousarray(array)
        else:
            layers.setdefault(each.path, []).append(array)
    return found | {path: np.stack(arrays) for path, arrays in layers.items()}


def written(arrays: Arrays, entries: Iterable[Entry]) -> dict[str, Float32[np.ndarray, "..."]]:
    """The float32 state dict there. Where a layer has no bias or no scale of a norm, zeros or ones are written."""
    state = {}
    for each in entries:
        array = arrays.get(each.path)
        if array is None:
            array = np.ones(each.shape) if each.path[-1] == "scale" else np.zeros(each.shape)
        elif each.place is not None and np.ndim(array) > len(each.shape):
            array = array[each.place]
        state[each.name] = np.array(np.transpose(array) if each.transposed else array, np.float32, order="C")
    return state


def check_state(
    state: StateDict,
    wanted: Shapes,
    hint: str,
    unused: Callable[[str], bool],
    further: Mapping[str, list[str]] | None = None,
) -> None:
    """Raises: UserError that names the parameters that do not fit, by the kind of problem, and ends with `hint`.

    `wanted` has the shapes. Others of which `unused` is true may be there. `further` has more kinds of problems.
    """
    kinds = {
        "missing": [f"{name} {list(shape)}" for name, shape in wanted.items() if name not in state],
        "unknown": [
            f"{name} {_described(array)}" for name, array in state.items() if name not in wanted and not unused(name)
        ],
        "of the wrong shape or type": [
            f"{name} is {_described(state[name])}, not {list(shape)}"
            for name, shape in wanted.items()
            if name in state and not fits(state[name], shape)
        ],
        **(further or {}),
    }
    problems = [f"{kind}: {', '.join(names[:8])}{' ...' * (len(names) > 8)}" for kind, names in kinds.items() if names]
    if problems:
        raise UserError(f"the parameters do not fit this model: {'; '.join(problems)}; {hint}")


def check_folder(state: StateDict, wanted: Shapes, unused: tuple[str, ...] = ()) -> None:
    """`check_state` for a folder in Hugging Face's format; `unused` are the ends of names."""
    hint = "give a folder as it was written, without quantisation or adapters, and with its own config.json"
    check_state(state, wanted, hint, lambda name: name.endswith(unused))


def fits(array: Shaped[np.ndarray, "..."], shape: tuple[int, ...]) -> bool:
    """Whether an array has this shape and floating-point numbers, as those of a quantised model have not."""
    return array.shape == shape and bool(jnp.issubdtype(array.dtype, jnp.floating))


def _described(array: Shaped[np.ndarray, "..."]) -> str:
    return f"{list(array.shape)}{'' if jnp.issubdtype(array.dtype, jnp.floating) else f' of {array.dtype}'}"


def check_fields(config: ModelConfig, needed: Mapping[str, tuple[Any, ...]], program: str) -> None:
    """Raises: UserError for a field of the config with another value than those that all models of `program` have."""
    for name, values in needed.items():
        if (found := getattr(config, name)) not in values:
            raise UserError(f"model.{name} is {found!r:.200}, but {program} has {' or '.join(map(str, values))}")


def variables_of(arrays: Arrays) -> Variables:
    """The variables whose arrays have these paths, of which the first name is the collection."""
    return {"params": {}, "random": {}, **unflatten_dict(arrays)}


def placed(config: ModelConfig, found: Arrays) -> Variables:
    """The variables of a model from another program's arrays, by path.

    Where the model has masks, an array is W, and its magnitudes are the scores, so that the first masks keep its largest entries with
    their signs; else it is trained.
    Raises: UserError if more than masks is trained in layers.
    """
    beside = {"gains": config.gains != "none", "adapter_rank": config.adapter_rank > 0}
    for name in (name for name, trained in beside.items() if trained):
        raise UserError(
            f"model.{name} is {getattr(config, name)}, but an imported model has masks alone in its layers; leave it out, and give it to a "
            "run that begins with this one (train.init_from)"
        )
    arrays: Arrays = {}
    for path, shape in shapes(config).items():
        array = found[*path[1:-1], "kernel" if path[-1] == "scores" else path[-1]]
        assert array.shape == shape, path
        if path[-1] == "scores" and config.selection != "magnitude":  # which takes the magnitudes itself
            array = np.abs(array)
        arrays[path] = np.array(array, np.float32)
    return variables_of(arrays)
