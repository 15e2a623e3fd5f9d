"""The matrices and norms of a model, by the paths of their modules, with the roles that name them in recipes and tickets."""

from collections.abc import Iterator
from typing import NamedTuple

from one_layer.layers.groups import Group
from one_layer.layers.settings import DIRECTIONS, GATES, WIDTH
from one_layer.layers.trees import Path
from one_layer.models.config import ModelConfig


class Part(NamedTuple):
    """A matrix: the path of its module, its role, its shape [fan_in, fan_out], its kind, and the group of a layer's matrix.

    The kind is `trained`, `masked` or `fixed`; `given` for a fixed one that no recipe draws; or `tied` for the matrix of a head that is
    the embedding, and so no array of its own. With `bias`, its outputs have a trained one. `main`: it belongs to the layers that a number
    of layers stands for.
    """

    path: Path
    role: str
    shape: tuple[int, int]
    kind: str
    bias: bool = False
    group: Group | None = None
    main: bool = False


class NormPart(NamedTuple):
    """A norm: the path of its module, its role, its kind, and the axes before the features of its scale and of its shift."""

    path: Path
    role: str
    kind: str
    features: int
    scale: tuple[int, ...] = ()
    shift: tuple[int, ...] = ()


def matrices(config: ModelConfig) -> Iterator[Part]:
    """All matrices: of the heads, of one layer of every group of every stack, and the tables."""
    for head in config.network_family.heads(config):
        yield Part((head.name,), head.role, head.shape, "tied" if head.tied else "trained", bias=True)
    for stack, group in _groups(config):
        of_layer = group.layer.kind, group.layer.bias, group, group.letter == config.main_letter
        for names, role, shape in _of_layer(config, stack, group):
            yield Part((stack, group.name, *names), f"{_prefix(stack, group)}/{role}", shape, *of_layer)
    for table in config.network_family.tables(config):
        yield Part((table.name,), table.role, (table.rows, config.d_model), config.table_kind)
    if config.position_rows:
        kind = "trained" if config.positions == "learned" else "given"
        role = f"{config.network_family.stacks[0]}/position"  # models of one stack have such a table
        yield Part(("position_embedding",), role, (config.position_rows, config.d_model), kind)


def norms(config: ModelConfig) -> Iterator[NormPart]:
    """All norms: of the embeddings, after each pre-LN stack, of the heads, and of each block of one layer of each group."""
    kind, width = str(config.norm), config.d_model
    if config.embedding_norm:
        yield NormPart(("embedding_norm", "layer_norm"), "encoder/embedding/norm", kind, width)
    for stack in config.network_family.stacks:
        if config.stack(stack).final_norm is not None:
            yield NormPart((stack, "final_norm", "layer_norm"), f"{stack}/final/norm", kind, width)
    for head in config.network_family.heads(config):
        if head.norm:
            yield NormPart((f"{head.name}_norm", "layer_norm"), f"{head.role}/norm", "affine", head.shape[1])
    for stack, group in _groups(config):
        kind, block, layers = group.layer.norm, group.layer.block, (group.count,)
        scale = () if config.share_norm_scale and group.shared_params and kind in ("affine", "rms") else layers
        for name in (*config.network_family.attentions(stack), "ffn") if block == "transformer" else (block,):
            path, role = (stack, group.name, f"{name}_norm", "layer_norm"), f"{_prefix(stack, group)}/{name}/norm"
            yield NormPart(path, role, kind, width, scale, layers)


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
        yield ("conv", "kernels"), "conv/kernels", (d, s.heads * WIDTH)
        yield ("conv", "out"), "conv/out", (d, d)
