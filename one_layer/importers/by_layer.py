"""The matrices that a model computes with, for the formats of other programs: float32, W ⊙ M, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.data.tokens import LONGEST
from one_layer.layers.groups import layers_apart
from one_layer.layers.trees import flatten_dict, unflatten_dict
from one_layer.models import ModelConfig, shapes
from one_layer.system.errors import UserError
from one_layer.tasks.model import prepared

Variables = dict[str, Any]
Path = tuple[str, ...]

POSITIONS = 2 * LONGEST  # of a sentence: sources are cut at LONGEST, and translations may be longer than their sources

Arrays = dict[Path, Float32[np.ndarray, "..."]]
StateDict = Mapping[str, Shaped[np.ndarray, "..."]]  # of another program
Shapes = Mapping[str, tuple[int, ...]]


def exact(config: ModelConfig, variables: Variables) -> Variables:
    """`variables` with all masks applied to their weights, in float32, whatever type the model computes in."""
    return prepared(config.replace(dtype="float32"), variables)


def layers(config: ModelConfig, applied: Variables, stack: str) -> Iterator[Arrays]:
    """The arrays of each layer of a stack, by path, for instance `("self_attention", "query", "kernel")`. `applied` is from `exact`."""
    trees = {name: tree[stack] for name, tree in applied.items() if stack in tree}
    for _, layer in layers_apart(trees, config.stack(stack)):
        yield _by_path(layer)


def outside(config: ModelConfig, applied: Variables, stack: str = "") -> Arrays:
    """The arrays of the network outside its stacks, for instance its tables; with `stack`, those of the stack outside its layers."""
    stacks = config.network_family.stacks
    groups = [group.name for group in config.stack(stack).groups] if stack else stacks
    trees = {name: tree.get(stack, {}) if stack else tree for name, tree in applied.items()}
    return _by_path(
        {name: {key: each for key, each in tree.items() if key not in groups} for name, tree in trees.items()}
    )


def check_state(state: StateDict, wanted: Shapes, others: tuple[str, ...] = ()) -> None:
    """Raises: UserError that names every parameter of a Hugging Face model that does not fit.

    `wanted` has the shapes; parameters whose names end as one of `others` may be there too.
    """
    kinds = misfits(state, wanted, lambda name: name.endswith(others))
    problems = [f"{kind}: {', '.join(names[:8])}{' ...' * (len(names) > 8)}" for kind, names in kinds.items() if names]
    if problems:
        raise UserError(
            f"the parameters do not fit the model of config.json: {'; '.join(problems)}; give a folder as it was written, without "
            "quantisation or adapters"
        )


def misfits(state: StateDict, wanted: Shapes, may_be: Callable[[str], bool]) -> dict[str, list[str]]:
    """The parameters of another program's model that do not fit, by the kind of problem. Others of which `may_be` is true may be there."""
    return {
        "missing": [f"{name} {list(shape)}" for name, shape in wanted.items() if name not in state],
        "unknown": [
            f"{name} {_described(array)}" for name, array in state.items() if name not in wanted and not may_be(name)
        ],
        "of the wrong shape or type": [
            f"{name} is {_described(state[name])}, not {list(shape)}"
            for name, shape in wanted.items()
            if name in state and not fits(state[name], shape)
        ],
    }


def fits(array: Shaped[np.ndarray, "..."], shape: tuple[int, ...]) -> bool:
    """Whether an array has this shape and floating-point numbers, as those of a quantised model have not."""
    return array.shape == shape and bool(jnp.issubdtype(array.dtype, jnp.floating))


def _described(array: Shaped[np.ndarray, "..."]) -> str:
    return f"{list(array.shape)}{'' if jnp.issubdtype(array.dtype, jnp.floating) else f' of {array.dtype}'}"


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


def variables_of(arrays: Arrays) -> Variables:
    """The variables whose arrays have these paths, of which the first name is the collection."""
    return {"params": {}, "random": {}, **unflatten_dict(arrays)}


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


def check_epsilon(config: ModelConfig, program: str) -> None:
    """Raises: UserError for another epsilon in norms than the one that all models of `program` have."""
    if config.norm_epsilon != 1e-5:
        raise UserError(
            f"model.norm_epsilon is {config.norm_epsilon}, but norms in {program} have 1e-05; export a model with model.norm_epsilon=1e-5"
        )


def _by_path(tree: Variables) -> Arrays:
    """The arrays of all collections without the collection's name; no two of them have the same path."""
    return {path[1:]: np.asarray(leaf, np.float32) for path, leaf in flatten_dict(tree).items()}
