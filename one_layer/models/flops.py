"""Counts the floating-point operations of training from shapes. (XLA's own count counts the body of a scan once.)

A product of [n, k] and [k, m] takes 2 n k m operations. Only products count: matrices, attention, convolutions and the output
projection. Norms, softmax, masks and the optimiser are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from one_layer.layers.groups import Group
from one_layer.models.config import ModelConfig
from one_layer.models.parts import Part, matrices

_FROM_SOURCE = ("key", "value")  # of cross-attention: computed at the positions of the source


def batch_flops(config: ModelConfig, batch: Mapping[str, Any]) -> int:
    """The operations of an update, from the padded shapes of its batch, as `update_flops` counts them."""
    micro_batches, rows, source = batch["source"].shape
    target = next((batch[name].shape[-1] for name in ("target_in", "places") if name in batch), None)
    return update_flops(config, micro_batches * rows, source, target)


@lru_cache(maxsize=1024)
def update_flops(config: ModelConfig, rows: int, source: int, target: int | None = None) -> int:
    """The operations of the forward and the backward pass for `rows` padded sequences of `source` (and `target`) positions.

    The backward pass computes the gradient of every trained matrix, and of every input below which something is trained. A reservoir's
    matrices have no gradient, and with `backskip` neither has its input. With `layerdrop`, this is the expected number. In a masked
    language model, `target` counts the places of each sequence that are predicted.
    """
    alone = "encoder" not in config.network_family.stacks  # then the decoder reads `source`
    length = {"encoder": 0, "decoder": source} if alone else {"encoder": source, "decoder": target or 0}
    trained_below = config.embedding != "frozen"
    total = 0.0
    for stack in config.network_family.stacks:
        settings = config.stack(stack)
        parts = {
            group.letter: [p for p in matrices(config) if (p.stack, p.group) == (stack, group)]
            for group in settings.groups
        }
        for letter in settings.pattern:
            group = settings.group(letter)
            skipped = letter == "R" and settings.backskip != "off"
            layer = _layer(parts[letter], group, stack, rows, length, trained_below and not skipped, settings.remat)
            total += (1 - settings.layerdrop) * layer
            trained_below = trained_below or group.layer.kind != "fixed"
    for head in config.network_family.heads(config):
        total += (not head.tied) * 3 * 2 * rows * (target or 1) * head.shape[0] * head.shape[1]
    for table in config.network_family.tables(config):
        if "target" in table.sides:  # the output projection
            products = 2 + (config.embedding != "frozen")
            total += products * 2 * rows * length["decoder"] * table.rows * config.d_model
    return round(total)


def _layer(
    parts: list[Part], group: Group, stack: str, rows: int, length: dict[str, int], to_input: bool, remat: bool
) -> int:
    s, own = group.layer, length[stack]
    products = sum(
        2 * rows * (length["encoder"] if _is_of_source(part) else own) * part.shape[0] * part.shape[1]
        for part in parts
        if not (part.path[-1] == "kernels" and s.convolution == "lightweight")
    )
    between, gradients = 0, 2  # products of activations, and the number of their factors that have a gradient
    if s.block == "transformer":
        keys = own + (length["encoder"] if stack == "decoder" else 0)
        between = 2 * 2 * rows * own * keys * s.d_model
    elif s.block == "conv":
        between, gradients = 2 * rows * own * s.width * s.d_model, 1 + (s.convolution == "dynamic")
    backward = to_input * (products + gradients * between) + (s.kind != "fixed") * products
    again = remat and bool(backward)
    return (1 + again) * (products + between) + backward


def _is_of_source(part: Part) -> bool:
    return "cross_attention" in part.path and part.path[-1] in _FROM_SOURCE
