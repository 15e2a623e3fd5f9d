"""Parameters of models, here and in other programs: their arrays, layer by layer; their names and shapes there; and what does not fit."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.data.tokens import LONGEST
from one_layer.layers.groups import layers_apart
from one_layer.layers.trees import Path, Variables, flatten_dict, variables_of
from one_layer.models import ModelConfig, shapes
from one_layer.system.errors import UserError
from one_layer.tasks.model import prepared

Arrays = dict[Path, Float32[np.ndarray, "..."]]
StateDict = Mapping[str, Shaped[np.ndarray, "..."]]
Named = dict[str, Float32[np.ndarray, "..."]]
Shapes = dict[str, tuple[int, ...]]

POSITIONS = 2 * LONGEST  # of a sentence: sources are cut at LONGEST, and translations may be longer than their sources


def exact(config: ModelConfig, variables: Variables) -> Variables:
    """`variables` with all masks applied to their weights, in float32, whatever type the model computes in."""
    return prepared(config.replace(dtype="float32"), variables)


def layers(config: ModelConfig, applied: Variables, stack: str) -> Iterator[Arrays]:
    """The arrays of each layer of a stack, by path, for instance `("self_attention", "query", "kernel")`. `applied` is from `exact`."""
    trees = {name: tree[stack] for name, tree in applied.items() if stack in tree}
    for _, layer in layers_apart(trees, config.stack(stack)):
        yield by_path(layer)


def outside(config: ModelConfig, applied: Variables, stack: str = "") -> Arrays:
    """The arrays of the network outside its stacks, for instance its tables; with `stack`, those of the stack outside its layers."""
    stacks = config.network_family.stacks
    groups = [group.name for group in config.stack(stack).groups] if stack else stacks
    trees = {name: tree.get(stack, {}) if stack else tree for name, tree in applied.items()}
    return by_path(
        {name: {key: each for key, each in tree.items() if key not in groups} for name, tree in trees.items()}
    )


def norm(found: Arrays, path: Path, features: int) -> tuple[Float32[np.ndarray, " d"], Float32[np.ndarray, " d"]]:
    """The scale and the shift of the norm at `path`; ones and zeros where it has none."""
    scale, shift = (found.get((*path, "layer_norm", leaf)) for leaf in ("scale", "bias"))
    return (
        np.ones(features, np.float32) if scale is None else scale,
        np.zeros(features, np.float32) if shift is None else shift,
    )


def has_rms(config: ModelConfig) -> bool:
    """Whether the norms of the stacks are RMSNorm, without shifts. Raises: UserError for a model that has both kinds of norms."""
    stacks = [config.stack(stack) for stack in config.network_family.stacks]
    kinds = {
        str(kind) for stack in stacks for kind in (*(g.layer.norm for g in stack.groups), stack.final_norm) if kind
    }
    if len(found := {kind.startswith("rms") for kind in kinds}) > 1:
        raise UserError(
            f"the layers of this model have norms of several kinds ({', '.join(sorted(kinds))}), but other engines have LayerNorm alone or "
            "RMSNorm alone; give a model with one of them (model.norm)"
        )
    return True in found


def check_blocks(config: ModelConfig, format: str) -> None:
    """Raises: UserError, which names the reservoirs, for layers that are no Transformer layers."""
    for stack in config.network_family.stacks:
        if any(group.layer.block != "transformer" for group in config.stack(stack).groups):
            raise UserError(
                f"model.{stack}_layers is {getattr(config, f'{stack}_layers')!r:.200} with model.reservoir={config.reservoir}, but the "
                f"format {format} has Transformer layers alone; give a model without such reservoirs"
            )


def by_path(tree: Variables) -> Arrays:
    """The arrays of all collections without the collection's name; no two of them have the same path."""
    return {path[1:]: np.asarray(leaf, np.float32) for path, leaf in flatten_dict(tree).items()}


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


def written(arrays: Arrays, entries: Iterable[Entry]) -> Named:
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
    state: StateDict, wanted: Shapes, hint: str, unused: Callable[[str], bool], further: Mapping[str, list[str]]
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
        **further,
    }
    problems = [f"{kind}: {', '.join(names[:8])}{' ...' * (len(names) > 8)}" for kind, names in kinds.items() if names]
    if problems:
        raise UserError(f"the parameters do not fit this model: {'; '.join(problems)}; {hint}")


def check_folder(state: StateDict, wanted: Shapes, unused: tuple[str, ...] = ()) -> None:
    """`check_state` for a folder in Hugging Face's format; `unused` are the ends of names."""
    hint = "give a folder as it was written, without quantisation or adapters, and with its own config.json"
    check_state(state, wanted, hint, lambda name: name.endswith(unused), further={})


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


def refuse_shared(config: ModelConfig) -> None:
    """Raises: UserError if layers share a trained matrix, a mask or the scale of a norm."""
    shared = {"sharing": config.sharing, "share_norm_scale": config.share_norm_scale}
    for name, value in shared.items():
        if value and value != "none":
            raise UserError(
                f"model.{name} is {value}, but each layer of an imported model has parameters of its own; leave it out"
            )


def placed(config: ModelConfig, found: Arrays) -> Variables:
    """The variables of a model from another program's arrays, by path.

    Where the model has masks, an array is W, and its magnitudes are the scores, so that the first masks keep its largest entries with
    their signs; else it is trained.
    Raises: UserError if more than masks is trained in layers, or if layers share what is trained.
    """
    refuse_shared(config)
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
