"""The layers of a stack. One shared layer × L Supermasks: `variable_broadcast` and `variable_axes` hold the whole idea of the paper.

The layer is written once and scanned L times. Broadcast variables are the same in every step: the random layer. Variables with an
axis differ from step to step: the scores, and therefore the masks (Shen et al. 2021, arXiv 2109.03939, section 3).

Stacks of unlike layers are in `one_layer.layers.mixed`.
"""

from functools import partial
from typing import Any

import flax.linen as nn
from jaxtyping import Array, Float

from one_layer.layers.blocks import Layer
from one_layer.layers.dropout import AGAIN
from one_layer.layers.groups import Group, StackSettings, one_each
from one_layer.layers.matrix import Norm
from one_layer.layers.mixed import run_mixed


class Stack(nn.Module):
    """The layers of a stack, one after the other: each computes `layer(its settings)(x, *rest)` with the same `rest`.

    The variables of a group of layers are those of one layer, with the layer axis first, under the group's name. With `one_weight`,
    the group's collection `random` holds the matrices of one layer, without the axis; so do `params` that all its layers share: trained
    matrices, for instance. If
    `intermediates` is mutable, it receives the output of each layer.
    """

    layer: type[Layer]
    settings: StackSettings

    @nn.compact
    def __call__(self, x: Float[Array, "batch length d"], *rest: Any) -> Float[Array, "batch length d"]:
        settings = self.settings
        if settings.alike:
            x = self._scan(settings.groups[0], x, *rest)
        else:
            mutable = [name for name in ("memory", "intermediates") if self.is_mutable_collection(name)]
            keys = {name: self.make_rng(name) for name in ("dropout", AGAIN) if self.has_rng(name)}
            x, made = run_mixed(self.layer, settings, dict(self.variables), x, rest, keys, mutable)
            for name, tree in made.items():
                for group, value in tree.items():
                    self.put_variable(name, group, value)
        if settings.final_norm is None:
            return x
        layer = settings.groups[0].layer
        return Norm(settings.final_norm, layer.dtype, layer.norm_epsilon, name="final_norm")(x)

    def _scan(self, group: Group, x: Array, *rest: Any) -> Array:
        def step(layer: Layer, x: Array, *rest: Any) -> tuple[Array, None]:
            y = layer(x, *rest)
            layer.sow("intermediates", "output", y)
            return y, None

        length = len(self.settings.pattern)
        with_axis = ["params", "materialized", "frozen", "packed", "intermediates", "memory"]
        with_axis += [] if group.one_weight else ["random"]
        scan = nn.scan(
            nn.remat(step, prevent_cse=False) if any(self.settings.recomputed) else step,
            variable_broadcast="random" if group.one_weight else False,
            variable_axes=dict.fromkeys(with_axis, 0),
            split_rngs={"params": True, "dropout": True, AGAIN: True},
            in_axes=nn.broadcast,
            length=length,
            unroll=length if self.settings.unrolled else 1,
        )

        def layers(layer: Layer, x: Array, *rest: Any) -> Array:
            return scan(layer, x, *rest)[0]

        if group.shared_params:
            layers = nn.map_variables(layers, "params", trans_in_fn=partial(one_each, length=length))
        return layers(self.layer(group.layer, name=group.name), x, *rest)
