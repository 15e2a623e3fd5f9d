"""One shared layer × L Supermasks: the whole idea of the paper is the two lines `variable_broadcast` and `variable_axes`.

The body is written once and scanned L times. What is broadcast is the same in every step: the random layer. What has an axis
differs from step to step: the scores, and so the masks (Shen et al. 2021, arXiv 2109.03939, section 3).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from one_layer.layers.blocks import Layer
from one_layer.models.config import ModelConfig

Variables = dict[str, Any]


class Stack(nn.Module):
    """`length` applications of one layer: `layer(config)(x, *rest)`, `rest` being the same in each.

    With `sharing` `weights`, the collection `random` holds one layer's matrices; else those of `length` layers, the layer axis
    first. `params` and `memory` have it first too, but for those `params` that all layers share.
    `intermediates`, where mutable, gets each layer's output. With `remat` a layer's inner values are computed again in the
    backward pass instead of kept.
    """

    layer: type[Layer]
    config: ModelConfig
    length: int

    @nn.compact
    def __call__(self, x: Float[Array, "batch length d"], *rest: Any) -> Float[Array, "batch length d"]:
        def step(layer: Layer, x: Array, *rest: Any) -> tuple[Array, None]:
            y = layer(x, *rest)
            layer.sow("intermediates", "output", y)
            return y, None

        one_weight = self.config.sharing == "weights"
        scan = nn.scan(
            nn.remat(step, prevent_cse=False) if self.config.remat else step,
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
            length=self.length,
        )

        def layers(layer: Layer, x: Array, *rest: Any) -> Array:
            return scan(layer, x, *rest)[0]

        if self.config.shares_params:
            layers = nn.map_variables(layers, "params", trans_in_fn=partial(_one_each, length=self.length))
        return layers(self.layer(self.config, name="layers"), x, *rest)


def layers_apart(variables: Variables, config: ModelConfig, length: int) -> list[Variables]:
    """The variables of every layer of a stack, from the stack's: for a loop that calls `layer(config).apply` layer by layer.

    Decoding is such a loop: a scan inside its loop over the tokens would copy each layer's matrices, keys and values at every
    token, out of the stacked ones and back.
    """
    stacked = {name: tree["layers"] for name, tree in variables.items() if "layers" in tree}
    one_weight = config.sharing == "weights"
    shared = {name: tree for name, tree in stacked.items() if one_weight and name == "random"}
    if config.shares_params:
        stacked["params"] = _one_each(stacked["params"], length)

    def layer(number: int) -> Variables:
        own = {name: tree for name, tree in stacked.items() if name not in shared}
        return {**shared, **jax.tree.map(lambda leaf: leaf[number], own)}

    return [layer(number) for number in range(length)]


def _one_each(params: Any, length: int) -> Any:
    """`params` with a copy for every layer of what the layers share; its gradient is the sum over the layers."""

    def repeat(path: tuple[Any, ...], leaf: Array) -> Array:
        axes = 2 if path[-1].key in ("scores", "kernel") else 1
        return jnp.broadcast_to(leaf, (length, *leaf.shape)) if leaf.ndim == axes else leaf

    return jax.tree_util.tree_map_with_path(repeat, params)
