"""The matrices that a model computes with, for the formats of other programs: float32, W ⊙ M, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float32

from one_layer.data.tokens import LONGEST
from one_layer.layers.groups import layers_apart
from one_layer.layers.trees import flatten_dict
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import prepared

Variables = dict[str, Any]
Path = tuple[str, ...]

POSITIONS = 2 * LONGEST  # of a sentence: sources are cut at LONGEST, and translations may be longer than their sources

Arrays = dict[Path, Float32[np.ndarray, "..."]]


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
