"""Counts the floating-point operations of training from shapes. (XLA's own count counts the body of a scan once.)

A product of [n, k] and [k, m] takes 2 n k m operations. Only products count: matrices, attention, convolutions and the output
projection. Norms, softmax, masks and the optimiser are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from one_layer.layers.beside import ADAPTERS
from one_layer.layers.freezing import words
from one_layer.layers.groups import Group
from one_layer.layers.materializing import trained_leaf
from one_layer.layers.settings import WIDTH, LayerSettings
from one_layer.layers.trees import Path
from one_layer.models.config import ModelConfig
from one_layer.models.parts import Part, matrices

_FROM_SOURCE = ("key", "value")  # of cross-attention: computed at the positions of the source


def batch_flops(config: ModelConfig, batch: Mapping[str, Any], rows: int) -> int:
    """The operations of an update, from the padded shapes of its batch, as `update_flops` counts them.

    `rows`: those of all micro-batches. The batch may have more, which only share it out over devices.
    """
    # The labels of a classifier are as wide as its text, but it has one prediction for each.
    target = "target_in" if "decoder" in config.network_family.stacks else "places"
    length = batch[target].shape[-1] if target in batch else None
    return update_flops(config, rows, batch["source"].shape[-1], length)


@lru_cache(maxsize=1024)
def update_flops(config: ModelConfig, rows: int, source: int, target: int | None = None) -> int:
    """The operations of the forward and the backward pass for `rows` padded sequences of `source` (and `target`) positions.

    The backward pass computes the gradient of every trained matrix, and of every input below which something is trained. A reservoir's
    matrices have no gradient, and with `backskip` neither has its input. A scan over layers also computes the gradient of its first input
    where nothing is trained below; that is left out. With `layerdrop`, this is the expected number. Only matrices count as trained: where
    norms or biases alone are trained below an input, its gradient is left out. In a masked language model, `target` counts the places of
    each sequence that are predicted.
    """
    alone = "encoder" not in config.network_family.stacks  # then the decoder reads `source`
    length = {"encoder": 0, "decoder": source} if alone else {"encoder": source, "decoder": target or 0}
    tables, table_leaf = config.network_family.tables(config), trained_leaf(config.table_kind, config.supermask)
    total, below, encoded = 0.0, False, False
    for stack in config.network_family.stacks:
        side = "source" if stack == "encoder" else "target"
        settings, encoded = config.stack(stack), below
        below = any(_trains_at(config, (table.name,), table_leaf) for table in tables if side in table.sides)
        below |= config.positions == "learned" and _trains_at(config, ("position_embedding",), "kernel")
        parts = {
            group.letter: [p for p in matrices(config) if p.path[0] == stack and p.group == group]
            for group in settings.groups
        }
        layers = zip(settings.pattern, settings.recomputed, strict=True)
        for number, (letter, recomputed) in enumerate(layers, 1):
            group = settings.group(letter)
            trained = [_trains(config, group, part, number) for part in parts[letter]]
            skipped = letter == "R" and settings.backskip != "off"
            layer = _Layer(group.layer, stack, rows, length, below and not skipped, encoded)
            for part, its_own in zip(parts[letter], trained, strict=True):
                layer.add(part, its_own)
                total += _adapter(config, part, number)
            total += (1 - settings.layerdrop) * layer.operations(recomputed)
            below = below or layer.below
    for head in config.network_family.heads(config):
        trains = _trains_at(config, (head.name,), "kernel")
        total += (not head.tied) * (1 + below + trains) * 2 * rows * (target or 1) * head.shape[0] * head.shape[1]
        below = below or trains
    for table in tables:
        if "target" in table.sides:  # the output projection
            products = 1 + below + _trains_at(config, (table.name,), table_leaf)
            total += products * 2 * rows * length["decoder"] * table.rows * config.d_model
    return round(total)


def _adapter(config: ModelConfig, part: Part, number: int) -> int:
    """The operations of an adapter's product, made once for an update, and of the gradients of its trained factors."""
    if not part.main:
        return 0
    trained = sum(_trains_at(config, part.path, each, number) for each in ADAPTERS)
    return (1 + trained) * 2 * config.adapter_rank * part.shape[0] * part.shape[1]


def _trains(config: ModelConfig, group: Group, part: Part, number: int) -> bool:
    """Whether a matrix of layer `number` has a gradient: it, its mask, or what is trained beside that. What all layers share, a mask or a
    trained matrix, belongs to none of them."""
    leaf = trained_leaf(part.kind, config.supermask)
    its_own = None if (group.one_mask if leaf == "scores" else group.one_weight) else number
    beside = config.beside if part.main else ()
    return _trains_at(config, part.path, leaf, its_own) or any(
        _trains_at(config, part.path, each, number) for each in beside
    )


def _trains_at(config: ModelConfig, path: Path, leaf: str | None, number: int | None = None) -> bool:
    return leaf is not None and config.freezing.trains(words((*path, leaf), number))


@dataclass
class _Layer:
    """Adds up the operations of one layer, matrix by matrix, from its input to its output.

    `below`: whether something is trained below the point that is reached; `encoded`: below the encoder's output.
    """

    settings: LayerSettings
    stack: str
    rows: int
    length: dict[str, int]
    below: bool
    encoded: bool
    forward: int = 0
    backward: int = 0
    _start: bool = False  # `below` at the beginning of an attention, or of a gated feed-forward network
    _reached: list[bool] = field(default_factory=list)  # whether a gradient reaches its queries, keys and values

    def add(self, part: Part, trained: bool) -> None:
        s, name, own = self.settings, part.path[-1], self.length[self.stack]
        cross = "cross_attention" in part.path
        of_source = cross and name in _FROM_SOURCE
        if name in ("query", "ffn_gate"):
            self._start, self._reached = self.below, []
        if name == "output":
            keys = self.length["encoder"] if cross else own
            query, key, value = self._reached
            for factors in (query + key, (query or key) + value):  # of queries and keys, and of weights and values
                self._between(2 * self.rows * own * keys * s.d_model, factors)
        if name == "kernels":
            self._between(2 * self.rows * own * WIDTH * s.d_model, 2 * self.below)
        reaches = self.encoded if of_source else self._start if name in self._alike else self.below
        products = 2 * self.rows * (self.length["encoder"] if of_source else own) * part.shape[0] * part.shape[1]
        self.forward += products
        self.backward += (reaches + trained) * products
        self._reached.append(reaches or trained)
        self.below = self.below or trained or (of_source and self.encoded)

    @property
    def _alike(self) -> tuple[str, ...]:
        """The matrices that read what the first of them reads: one of them being trained does not reach the others."""
        return ("query", *_FROM_SOURCE, "ffn_gate", *(("ffn_in",) if self.settings.modern else ()))

    def _between(self, products: int, gradients: int) -> None:
        """A product of activations, and the number of its factors that have a gradient."""
        self.forward += products
        self.backward += gradients * products

    def operations(self, remat: bool) -> int:
        return (1 + (remat and bool(self.backward))) * self.forward + self.backward
