"""One shared layer × L Supermasks: the two arguments `variable_broadcast` and `variable_axes` hold the whole idea of the paper.

The layer is written once and scanned L times. Broadcast variables are the same in every step: the random layer. Variables with an
axis differ from step to step: the scores, and therefore the masks (Shen et al. 2021, arXiv 2109.03939, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from one_layer.layers.blocks import Layer, LayerSettings

Variables = dict[str, Any]


@dataclass(frozen=True)
class StackSettings:
    """`length` layers with the settings `layer`.

    `one_weight`: all layers share one random layer; else each layer has its own. `shared_params`: the layers share some trained
    parameters (one mask, biases, or the scales of norms). `remat`: the backward pass recomputes a layer's inner values instead of
    storing them.
    """

    layer: LayerSettings
    length: int
    one_weight: bool
    shared_params: bool = False
    remat: bool = False


class Stack(nn.Module):
    """The layers of a stack, one after the other: each computes `layer(settings.layer)(x, *rest)` with the same `rest`.

    With `one_weight`, the collection `random` holds the matrices of one layer; else those of every layer, with the layer axis first.
    `params` and `memory` have the layer axis first too, except for `params` that all layers share. If `intermediates` is mutable, it
    receives the output of each layer.
    """

    layer: type[Layer]
    settings: StackSettings

    @nn.compact
    def __call__(self, x: Float[Array, "batch length d"], *rest: Any) -> Float[Array, "batch length d"]:
        def step(layer: Layer, x: Array, *rest: Any) -> tuple[Array, None]:
            y = layer(x, *rest)
            layer.sow("intermediates", "output", y)
            return y, None

        one_weight = self.settings.one_weight
        scan = nn.scan(
            nn.remat(step, prevent_cse=False) if self.settings.remat else step,
            variable_broadcast="random" if one_weight else False,
            variable_axes={
                "params": 0,
                "materialized": 0,
                "frozen": 0,
                "packed": 0,
                "intermediates": 0,
                "memory": 0,
                **({} if one_weight else {"random": 0}),
            },
            split_rngs={"params": True, "dropout": True},
            in_axes=nn.broadcast,
            length=self.settings.length,
        )

        def layers(layer: Layer, x: Array, *rest: Any) -> Array:
            return scan(layer, x, *rest)[0]

        if self.settings.shared_params:
            layers = nn.map_variables(layers, "params", trans_in_fn=partial(_one_each, length=self.settings.length))
        return layers(self.layer(self.settings.layer, name="layers"), x, *rest)


def layers_apart(variables: Variables, settings: StackSettings) -> list[Variables]:
    """Splits the variables of a stack into those of each layer, for a loop that calls the layers one by one.

    Decoding uses such a loop: a scan inside its loop over the tokens would copy every layer's matrices, keys and values at every token.
    """
    stacked = {name: tree["layers"] for name, tree in variables.items() if "layers" in tree}
    if settings.shared_params and "params" in stacked:
        stacked["params"] = _one_each(stacked["params"], settings.length)
    shared = {"random": stacked.pop("random")} if settings.one_weight and "random" in stacked else {}
    layers = range(settings.length)
    return [{**shared, **jax.tree.map(lambda leaf, number=number: leaf[number], stacked)} for number in layers]


def _one_each(params: Any, length: int) -> Any:
    """`params` with the shared leaves repeated for every layer; the gradient of a shared leaf is the sum over the layers."""

    def repeat(path: tuple[Any, ...], leaf: Array) -> Array:
        axes = 2 if path[-1].key in ("scores", "kernel") else 1
        return jnp.broadcast_to(leaf, (length, *leaf.shape)) if leaf.ndim == axes else leaf

    return jax.tree_util.tree_map_with_path(repeat, params)
