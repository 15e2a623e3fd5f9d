"""Converts fairseq's parameters into this project's variables, and back. Parameters are matched by name, and no value changes.

A leaf of this project's tree has one name per layer in fairseq's state dict. fairseq stores a matrix as [fan_out, fan_in]; both
store a table as [vocabulary, d]. A tensor that several of fairseq's modules share is written once for each module. The names are
those of fairseq's Transformer and of the paper's code (sIncerass/one_layer_lottery_ticket @ 0a20fb9, a fork of fairseq).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.importers.by_layer import Path, StateDict, Variables, check_epsilon, fits, misfits, variables_of
from one_layer.layers.groups import has_layer_axis
from one_layer.layers.quantization import quantized
from one_layer.models import shapes
from one_layer.models.config import ModelConfig
from one_layer.own_selection import is_own
from one_layer.system.errors import UserError

MODULES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
    "ffn_in": "fc1",
    "ffn_out": "fc2",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "ffn_norm": "final_layer_norm",
}
_TABLES = {
    "source_embedding": ("encoder.embed_tokens",),
    "target_embedding": ("decoder.embed_tokens", "decoder.output_projection"),
    "shared_embedding": ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"),
}
_LEAVES = {"kernel": "weight", "scale": "weight", "scores": "scores", "bias": "bias"}
# Entries that were not learned: the version of the format, and the sinusoidal positions that older versions stored.
_BOOKKEEPING = re.compile(r"(encoder|decoder)\.(version|embed_positions\.(_float_tensor|weights))")


def convert(state_dict: StateDict, model_config: ModelConfig) -> Variables:
    """Converts fairseq's parameters into the variables of `model_config`: its collections, as float32 NumPy arrays.

    Half precision is converted exactly. If several modules share a tensor, the state dict may hold all copies or only the first.

    In half precision many scores are equal, and the file does not say which scores at the threshold survive. Here those with the
    lower index [fan_in, fan_out] survive; in the paper's code those that its unstable sort puts last.

    Raises: UserError that names every parameter that is unknown, missing, of the wrong shape, or different from its shared copy.
    """
    check_translates(model_config)
    leaves = list(_leaves(shapes(model_config), model_config))
    problems = _problems(state_dict, leaves, _constants(leaves, model_config))
    if problems:
        raise UserError(
            f"the state dict does not fit this model: {'; '.join(problems)}; give the sizes and options that it was trained with"
        )
    return variables_of({leaf.path: leaf.read(state_dict) for leaf in leaves})


def export(variables: Variables, model_config: ModelConfig) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Returns fairseq's float32 state dict of a model: the inverse of `convert`, with every entry that fairseq's loader needs.

    Copies of a shared tensor are the same array object, as they are one tensor in fairseq. Raises: UserError for a model that
    fairseq cannot build.
    """
    check_translates(model_config)
    named = jax.tree_util.tree_leaves_with_path(quantized(variables, model_config.precisions))
    arrays = {tuple(key.key for key in keys): np.asarray(array, np.float32) for keys, array in named}
    leaves = list(_leaves({path: array.shape for path, array in arrays.items()}, model_config))
    state = _constants(leaves, model_config)
    for leaf in leaves:
        state.update(leaf.write(arrays[leaf.path]))
    for stack in ("encoder", "decoder"):
        state[f"{stack}.version"] = np.array([3.0], np.float32)
        state[f"{stack}.embed_positions._float_tensor"] = np.zeros(1, np.float32)
    return state


def check_translates(config: ModelConfig) -> None:
    """Raises: UserError for a model that neither fairseq nor the paper's fork of it can build."""
    if config.family != "translation":
        raise UserError(
            f"this model is of the family {config.family}; only translation models can be converted from and to fairseq"
        )
    if config.coats > 1:
        raise UserError(
            f"model.coats is {config.coats}, but the paper's code has masks of 0 and 1 alone; give a model with model.coats=1"
        )
    if config.selection == "sign" or is_own(config.selection):
        raise UserError(
            f"model.selection is {config.selection}, which the paper's code does not have; give a model with another"
        )
    if config.shares_trained:
        raise UserError(
            "model.sharing is weights in a dense model, whose layers share trained matrices; fairseq has no such model, so give another one"
        )
    groups = [group for stack in ("encoder", "decoder") for group in config.stack(stack).groups]
    if config.norm_position != "post" or any(group.name != "layers" for group in groups):
        raise UserError(
            f"this model has the layers {config.encoder_layers} and {config.decoder_layers}, with model.norm_position="
            f"{config.norm_position}; only post-LN models whose layers are alike can be converted from and to fairseq"
        )
    if config.gains != "none" or config.adapter_rank:
        raise UserError(
            f"this model has model.gains={config.gains} and model.adapter_rank={config.adapter_rank}, but models of fairseq have neither"
        )
    check_epsilon(config, "fairseq")
    norms = ("plain", "affine", "frozen") if config.masked else ("affine",)
    if config.norm not in norms or not (config.masked or config.bias):
        raise UserError(
            f"this model has model.norm={config.norm} and model.bias={config.bias}; fairseq's dense models have affine norms and "
            "biases, and the masked ones of the paper's code plain, affine or frozen norms"
        )


@dataclass(frozen=True)
class _Leaf:
    """One leaf of this project's tree.

    `names` has one entry per layer if `layered`, otherwise one entry; each entry holds fairseq's names of all copies.
    """

    path: Path
    shape: tuple[int, ...]
    names: list[tuple[str, ...]]
    layered: bool

    @property
    def transposed(self) -> bool:
        return self.path[-1] in ("kernel", "scores") and self.path[1] not in _TABLES

    @property
    def there(self) -> tuple[int, ...]:
        """The shape in fairseq."""
        own = self.shape[1:] if self.layered else self.shape
        return own[::-1] if self.transposed else own

    def read(self, state: StateDict) -> Float32[np.ndarray, "..."]:
        layers = [np.asarray(state[first], np.float32) for first, *_ in self.names]
        oriented = [layer.T if self.transposed else layer for layer in layers]
        return np.stack(oriented) if self.layered else np.ascontiguousarray(oriented[0])

    def write(self, array: Float32[np.ndarray, "..."]) -> Iterator[tuple[str, np.ndarray]]:
        for names, layer in zip(self.names, array if self.layered else [array], strict=True):
            oriented = np.array(layer.T if self.transposed else layer, order="C")  # a copy, because torch must own it
            yield from ((name, oriented) for name in names)


def _leaves(found: Mapping[Path, tuple[int, ...]], config: ModelConfig) -> Iterator[_Leaf]:
    """Yields a leaf for each path and its shape."""
    for path, shape in found.items():
        layered = has_layer_axis(path[-1], shape)
        names = _names(path, config)
        yield _Leaf(path, shape, [(name,) for name in names] if layered else [tuple(names)], layered)


def _names(path: Path, config: ModelConfig) -> list[str]:
    """Returns fairseq's names of the leaf at `path`: one per layer, or one per module that uses a table."""
    _, module, *inner, leaf = path
    kind = _LEAVES[leaf]
    if module in _TABLES:
        return [f"{table}.{kind}" for table in _TABLES[module]]
    within = ".".join(MODULES[name] for name in inner if name in MODULES)
    return [f"{module}.layers.{layer}.{within}.{kind}" for layer in range(config.depth(module))]


def _constants(leaves: list[_Leaf], config: ModelConfig) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Returns the parameters that only fairseq's model has. They are constants without information.

    If keep is 1, nothing is masked, but fairseq still has untrained scores. If the model has biases, fairseq's masked output
    projection has one too, which is 0 before training; this project's output projection has none.
    """
    found: dict[str, np.ndarray] = {}
    scored = {leaf.path[1:-1] for leaf in leaves if leaf.path[-1] == "scores"}
    for leaf in leaves:
        fixed = leaf.path[0] != "params" and leaf.path[-1] == "kernel"
        maskable = fixed and (leaf.path[1] not in _TABLES or config.embedding == "masked")
        if maskable and leaf.path[1:-1] not in scored:
            names = [f"{name.removesuffix('.weight')}.scores" for copies in leaf.names for name in copies]
            found.update(dict.fromkeys(names, np.ones(leaf.there, np.float32)))
    if config.masked and config.bias and config.embedding == "masked":
        found["decoder.output_projection.bias"] = np.zeros(config.target_vocab, np.float32)
    return found


def _problems(state: StateDict, leaves: list[_Leaf], constants: StateDict) -> list[str]:
    """Returns the problems of a state dict: one entry for each kind of problem, with all names."""
    shapes = {name: leaf.there for leaf in leaves for copies in leaf.names for name in copies}
    firsts = {name: copies[0] for leaf in leaves for copies in leaf.names for name in copies}
    wanted = {name: shape for name, shape in shapes.items() if name in state or name == firsts[name]}
    fitting = {name for name in wanted.keys() & state.keys() if fits(state[name], wanted[name])}
    kinds = {
        **misfits(state, wanted, lambda name: name in constants or bool(_BOOKKEEPING.fullmatch(name))),
        "different, but the model shares one tensor": [
            f"{name} and {first}"
            for name, first in firsts.items()
            if {name, first} <= fitting and not np.array_equal(state[name], state[first], equal_nan=True)
        ],
        "not finite": [name for name in wanted if name in fitting and not np.isfinite(state[name]).all()],
        "trained, but the model has a constant": [
            name for name, constant in constants.items() if name in state and not np.array_equal(state[name], constant)
        ],
    }
    return [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
