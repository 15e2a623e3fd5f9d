"""LayerDrop at test time: a model with some of its layers left out (Fan et al. 2020, arXiv 1909.11556, section 3.2).

The layers that stay make a model of their own, with a config and variables of its own. So scoring, decoding and tickets need not know of
the layers that are left out.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from one_layer.layers.freezing import STACKS
from one_layer.layers.groups import has_layer_axis
from one_layer.layers.pattern import left_out
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError

Variables = dict[str, Any]


def pruned(config: ModelConfig, variables: Variables, **layers: Any) -> tuple[ModelConfig, Variables]:
    """The model without the layers that are lower-case letters in `layers`: `encoder_layers`, `decoder_layers` or both.

    `variables` may be those of `initialize`, or those that `materialize` or a ticket gives. Raises: UserError, which names the key, for
    a string that differs from the model's own in more than that.
    """
    for key, value in layers.items():
        own = config.strings[key.removesuffix("_layers")]
        if not isinstance(value, str) or not left_out(own, value):
            raise UserError(
                f"model.{key} is {value!r:.200}, but the model was trained with the layers {own}; to leave layers out, give this string "
                "with their letters in lower case"
            )
    smaller = config.replace(**layers)
    return smaller, {
        collection: {name: _of_module(config, smaller, name, module) for name, module in tree.items()}
        for collection, tree in variables.items()
    }


def kept_layers(config: ModelConfig) -> dict[str, str]:
    """For each stack with layers left out, the numbers, from 1, of those that stay: for instance `1.2.4`."""
    strings = {stack: string for stack, string in config.strings.items() if not string.isupper()}
    return {
        stack: ".".join(str(place) for place, letter in enumerate(string, 1) if letter.isupper())
        for stack, string in strings.items()
        if string
    }


def _of_module(config: ModelConfig, smaller: ModelConfig, name: str, module: Variables) -> Variables:
    if name not in STACKS:
        return module
    groups, left = ({group.name: group.numbers for group in each.stack(name).groups} for each in (config, smaller))
    found = {}
    for part, tree in module.items():
        if part not in groups:  # the norm after the last layer
            found[part] = tree
        elif part in left:
            found[part] = _of_layers(tree, [groups[part].index(number) for number in left[part]])
    return found


def _of_layers(tree: Variables, places: list[int]) -> Variables:
    """The leaves of these layers. A leaf without a layer axis belongs to all layers."""

    def chosen(path: tuple[Any, ...], leaf: Any) -> Any:
        return leaf[np.array(places)] if has_layer_axis(path[-1].key, leaf.shape) else leaf

    return jax.tree_util.tree_map_with_path(chosen, tree)
