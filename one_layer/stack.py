"""One shared layer × L Supermasks: the whole idea of the paper is the two lines `variable_broadcast` and `variable_axes`.

The body is written once and scanned L times. What is broadcast is the same in every step: the random layer. What has an axis
differs from step to step: the scores, and so the masks (Shen et al. 2021, arXiv 2109.03939, section 3).
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
from jaxtyping import Array, Float

from one_layer.blocks import Layer
from one_layer.config import ModelConfig


class Stack(nn.Module):
    """`length` applications of one layer: `layer(config)(x, *rest)`, `rest` being the same in each.

    With `shared`, the collection `random` holds one layer's matrices; else those of `length` layers, the layer axis first.
    `params` have the layer axis first, `cache` and `memory` second, after the batch. `intermediates`, where mutable, gets
    each layer's output. With `remat` a layer's inner values are computed again in the backward pass instead of kept.
    """

    layer: type[Layer]
    config: ModelConfig
    length: int
    shared: bool
    remat: bool

    @nn.compact
    def __call__(self, x: Float[Array, "batch length d"], *rest: Any) -> Float[Array, "batch length d"]:
        def step(layer: Layer, x: Array, *rest: Any) -> tuple[Array, None]:
            y = layer(x, *rest)
            layer.sow("intermediates", "output", y)
            return y, None

        scan = nn.scan(
            nn.remat(step, prevent_cse=False) if self.remat else step,
            variable_broadcast="random" if self.shared else False,
            variable_axes={
                "params": 0,
                "materialized": 0,
                "intermediates": 0,
                "cache": 1,
                "memory": 1,
                **({} if self.shared else {"random": 0}),
            },
            split_rngs={"params": True, "dropout": True},
            in_axes=nn.broadcast,
            length=self.length,
        )
        return scan(self.layer(self.config, name="layers"), x, *rest)[0]
