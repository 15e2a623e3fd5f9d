"""The settings of a stack, and its variables by layer.

Layers with the same letter (see `one_layer.layers.pattern`) have the same settings and form a group. A group's variables are stored
together, with the layer axis first, so the variables do not depend on how a stack is cut into scans.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from one_layer.layers.freezing import Freezing
from one_layer.layers.pattern import segments
from one_layer.layers.settings import LayerSettings
from one_layer.layers.trees import Variables
from one_layer.platform import inside, on_cpu, on_gpu

_LOOPS: ContextVar[bool] = ContextVar("loops", default=False)


def with_loops(kept: bool) -> AbstractContextManager[None]:
    """Inside it, programs for GPUs keep their loops over layers, if `kept`: see `StackSettings.unrolled`."""
    return inside(_LOOPS, kept)


@dataclass(frozen=True)
class Group:
    """The `count` layers of one letter in a stack; `name` is the name of their module.

    `one_weight`: they share the matrices of one layer, random or trained; else each has its own. `one_mask`: they share the scores of one
    mask. `shared_params`: they share some trained parameters (matrices, one mask, or the scales of norms).
    """

    letter: str
    name: str
    layer: LayerSettings
    count: int = 1
    one_weight: bool = False
    one_mask: bool = False
    shared_params: bool = False


@dataclass(frozen=True)
class StackSettings:
    """`pattern` has a letter for each layer, and `groups` the settings of each letter.

    `remat`: the backward pass recomputes a layer's inner values instead of storing them, where this saves memory. `final_norm`: the kind
    of a LayerNorm after the last layer, which pre-LN needs, or None. In training, `layerdrop` is the probability that a layer is left out
    for a whole batch, and `backskip` says how gradients pass through reservoirs (see `one_layer.layers.mixed`). `freezing` says what is
    trained in the layers; `name` is `encoder` or `decoder`. `beside` names the arrays that are trained beside masks
    (`one_layer.layers.beside`).
    """

    pattern: str
    groups: tuple[Group, ...]
    remat: bool = False
    final_norm: str | None = None
    layerdrop: float = 0.0
    backskip: str = "off"
    freezing: Freezing = Freezing()  # noqa: RUF009  # it is frozen itself
    name: str = ""
    beside: tuple[str, ...] = ()

    @property
    def alike(self) -> bool:
        """Whether one scan over one kind of layer computes the stack."""
        skips = self.backskip != "off" and "R" in self.pattern
        return len(self.groups) == 1 and not (self.layerdrop or skips or self.freezing.by_layer)

    @property
    def unrolled(self) -> bool:
        """Whether no loop over layers stays in the program.

        On GPUs, an update without loops takes three quarters of the time: in a loop, each value that the backward pass needs is copied
        into an array of all layers, and out of it again. But it takes longer to compile (`with_loops`).

        XLA's CPU backend (jaxlib 0.10.2) computes slices of bfloat16 arrays in float32. In a loop, it thus converts a whole stack of saved
        values whenever it writes those of one layer, and transposes what it reads slowly. There, float32 models keep their programs.
        `remat` needs the loop, without which XLA would not compute again what it has.
        """
        return (
            (on_gpu() and not _LOOPS.get()) or (on_cpu() and self.groups[0].layer.dtype == "bfloat16")
        ) and not self.remat

    @property
    def recomputed(self) -> list[bool]:
        """For every layer, whether `remat` has an effect: only a loop over several layers or units of layers keeps less then.

        In a program without such a loop, XLA finds that the values are there already, or that it may compute them again at any time: on
        CPUs neither saves memory. Where the layers differ in what is frozen, there may be fewer such loops.
        """
        return [
            self.remat and repetitions > 1 for unit, repetitions in segments(self.pattern) for _ in unit * repetitions
        ]

    def group(self, letter: str) -> Group:
        """The group with this letter."""
        return next(group for group in self.groups if group.letter == letter)


def group_variables(variables: Variables, group: Group, count: int) -> tuple[Variables, Variables]:
    """The variables of a group of `count` layers: those that all its layers share, and the others, with the layer axis first."""
    stacked = {name: tree[group.name] for name, tree in variables.items() if group.name in tree}
    if group.shared_params and "params" in stacked:
        stacked["params"] = one_each(stacked["params"], count)
    shared = {"random": stacked.pop("random")} if group.one_weight and "random" in stacked else {}
    return shared, stacked


def layers_apart(variables: Variables, settings: StackSettings) -> list[tuple[LayerSettings, Variables]]:
    """Splits the variables of a stack into the settings and variables of each layer, for a loop that calls the layers one by one.

    Decoding uses such a loop: a scan inside its loop over the tokens would copy every layer's matrices, keys and values at every token.
    """
    found, seen = [], dict.fromkeys(settings.pattern, 0)
    groups = {
        letter: group_variables(variables, settings.group(letter), settings.pattern.count(letter)) for letter in seen
    }
    for letter in settings.pattern:
        shared, stacked = groups[letter]
        own = jax.tree.map(lambda leaf, number=seen[letter]: leaf[number], stacked)
        found.append((settings.group(letter).layer, {**shared, **own}))
        seen[letter] += 1
    return found


def one_each(params: Any, length: int) -> Any:
    """`params` with the shared leaves repeated for every layer; the gradient of a shared leaf is the sum over the layers."""

    def repeat(path: tuple[Any, ...], leaf: Array) -> Array:
        return leaf if has_layer_axis(path[-1].key, leaf.shape) else jnp.broadcast_to(leaf, (length, *leaf.shape))

    return jax.tree_util.tree_map_with_path(repeat, params)


def has_layer_axis(name: str, shape: tuple[int, ...]) -> bool:
    """Whether an array of a group has a layer axis; else it belongs to all layers. `name` is the last word of its path."""
    return len(shape) > (2 if name in ("scores", "kernel") else 1)
