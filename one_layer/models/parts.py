"""The matrices and norms of a layer, by the paths of their modules, with the roles that name them in recipes and tickets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from one_layer.layers.groups import Group
from one_layer.layers.pattern import numbers_of
from one_layer.layers.settings import DIRECTIONS, GATES
from one_layer.models.config import ModelConfig

Path = tuple[str, ...]


class Part(NamedTuple):
    """A matrix of one layer: the path of its module, its role, its shape [fan_in, fan_out], and the layer's stack and group."""

    path: Path
    role: str
    shape: tuple[int, int]
    stack: str
    group: Group

    def per_layer(self, config: ModelConfig) -> int:
        """The number of layers in the group."""
        return group_size(config, self.stack, self.group)

    def numbers(self, config: ModelConfig) -> tuple[int, ...]:
        """The numbers of these layers among all of the group; some may be left out."""
        return group_numbers(config, self.stack, self.group)


class NormPart(NamedTuple):
    """A LayerNorm of one layer: the path of its module, its role, and the layer's stack and group."""

    path: Path
    role: str
    stack: str
    group: Group


def group_size(config: ModelConfig, stack: str, group: Group) -> int:
    """The number of layers of a group."""
    return config.pattern(stack).count(group.letter)


def group_numbers(config: ModelConfig, stack: str, group: Group) -> tuple[int, ...]:
    """The numbers, from 0, of the layers of a group that are not left out."""
    return numbers_of(config.strings[stack], group.letter)


def matrices(config: ModelConfig) -> Iterator[Part]:
    """The matrices of one layer of every group of every stack. Masked and trained ones are projections, which may have biases."""
    for stack, group in _groups(config):
        for names, role, shape in _of_layer(config, stack, group):
            yield Part((stack, group.name, *names), f"{_prefix(stack, group)}/{role}", shape, stack, group)


def norms(config: ModelConfig) -> Iterator[NormPart]:
    """The norms of one layer of every group of every stack: one for each block."""
    for stack, group in _groups(config):
        block = group.layer.block
        for name in (*config.network_family.attentions(stack), "ffn") if block == "transformer" else (block,):
            path, role = (stack, group.name, f"{name}_norm", "layer_norm"), f"{_prefix(stack, group)}/{name}/norm"
            yield NormPart(path, role, stack, group)


def final_norms(config: ModelConfig) -> Iterator[tuple[Path, str]]:
    """Path and role of the norm after the last layer of each stack, in pre-LN models."""
    for stack in config.network_family.stacks:
        if config.stack(stack).final_norm is not None:
            yield (stack, "final_norm", "layer_norm"), f"{stack}/final/norm"


def _groups(config: ModelConfig) -> Iterator[tuple[str, Group]]:
    for stack in config.network_family.stacks:
        for group in config.stack(stack).groups:
            yield stack, group


def _prefix(stack: str, group: Group) -> str:
    """The beginning of the roles of a group. The main group's is older than the others and has no name."""
    return stack if group.name == "layers" else f"{stack}/{group.name}"


def _of_layer(config: ModelConfig, stack: str, group: Group) -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Path, role and shape of the matrices of one layer, inside the layer."""
    s = group.layer
    d, ffn = s.d_model, s.ffn
    if s.block == "transformer":
        for attention in config.network_family.attentions(stack):
            for name in ("query", "key", "value", "output"):
                yield (attention, name), f"{attention}/{name}", (d, d)
    if s.block in ("transformer", "ffn"):
        if s.modern:
            yield ("ffn_gate",), "ffn/gate", (d, ffn)
        yield ("ffn_in",), "ffn/in", (d, ffn)
        yield ("ffn_out",), "ffn/out", (ffn, d)
    if s.block == "gru":
        directions = DIRECTIONS[s.both_ways]
        width = d // len(directions)
        for direction in directions:
            for gate in GATES:
                for side, rows in (("input", d), ("state", width)):
                    yield ("gru", f"{direction}_{gate}_{side}"), f"gru/{direction}/{gate}/{side}", (rows, width)
    if s.block == "conv":
        yield ("conv", "in"), "conv/in", (d, 2 * d)
        dynamic = s.convolution == "dynamic"
        yield ("conv", "kernels"), "conv/kernels", (d, s.heads * s.width) if dynamic else (s.heads, s.width)
        yield ("conv", "out"), "conv/out", (d, d)
