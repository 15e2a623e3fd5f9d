"""Converts fairseq's parameters into this project's variables. Parameters are matched by name, and no value changes.

A leaf of this project's tree has one name per layer in fairseq's state dict. fairseq stores a matrix as [fan_out, fan_in]; both
store a table as [vocabulary, d]. A tensor that several of fairseq's modules share is there once for each module. The names are
those of fairseq's Transformer and of the paper's code (sIncerass/one_layer_lottery_ticket @ 0a20fb9, a fork of fairseq).
"""

import re
from typing import Any

import numpy as np

from one_layer.importers import parameters
from one_layer.importers.parameters import Entry, Path, StateDict, Variables
from one_layer.layers.groups import has_layer_axis
from one_layer.layers.trees import variables_of
from one_layer.models import shapes
from one_layer.models.config import ModelConfig
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
SELECTIONS = {
    "super_mask": "magnitude",
    "topk": "score",
    "threshold": "threshold",
    "sigmoid_threshold": "sigmoid_threshold",
    "signed_threshold": "signed_threshold",
}
# Entries that were not learned: the version of the format, and the sinusoidal positions that older versions stored.
_BOOKKEEPING = r"(encoder|decoder)\.(version|embed_positions\.(_float_tensor|weights))"
# fairseq's masked output projection has a bias if the others have one. It is 0 before training; this project's has none.
_NO_BIAS = "decoder.output_projection.bias"


def convert(state_dict: StateDict, model_config: ModelConfig) -> Variables:
    """Converts fairseq's parameters into the variables of `model_config`: its collections, as float32 NumPy arrays.

    Half precision is converted exactly. If several modules share a tensor, the state dict may hold all copies or only the first.

    In half precision many scores are equal, and the file does not say which scores at the threshold survive. Here those with the
    lower index [fan_in, fan_out] survive; in the paper's code those that its unstable sort puts last.

    Raises: UserError that names the parameters that are unknown, missing, of the wrong shape, or different from their shared copies.
    """
    check_translates(model_config)
    known, copies = entries(model_config)
    wanted = {each.name: each.shape for each in known}
    wanted |= {copy: wanted[first] for copy, first in copies.items() if copy in state_dict}
    fitting = [
        name for name, shape in wanted.items() if name in state_dict and parameters.fits(state_dict[name], shape)
    ]
    further = {
        "different, but the model shares one tensor": [
            f"{copy} and {first}"
            for copy, first in copies.items()
            if {copy, first} <= {*fitting} and not np.array_equal(state_dict[copy], state_dict[first], equal_nan=True)
        ],
        "not finite": [name for name in fitting if not np.isfinite(state_dict[name]).all()],
        "trained, but the model has a constant": [_NO_BIAS] if np.any(state_dict.get(_NO_BIAS, 0.0)) else [],
    }
    unused = [_BOOKKEEPING]
    if model_config.masked and model_config.bias and model_config.embedding == "masked":
        unused.append(re.escape(_NO_BIAS))
    if model_config.keep == 1:  # nothing is masked, but fairseq still has scores
        unused.append(r".*\.scores")
    hint = "give the sizes and options that it was trained with"
    parameters.check_state(state_dict, wanted, hint, lambda name: bool(re.fullmatch("|".join(unused), name)), further)
    found = parameters.read(state_dict, known)
    return variables_of({path: found[path[1:]] for path in shapes(model_config)})


def check_translates(config: ModelConfig) -> None:
    """Raises: UserError for a model that neither fairseq nor the paper's fork of it can build."""
    needed: dict[str, tuple[Any, ...]] = {
        "family": ("translation",),
        "selection": tuple(SELECTIONS.values()),
        "norm_position": ("post",),
        "gains": ("none",),
        "adapter_rank": (0,),
        "norm_epsilon": (1e-5,),
        "norm": ("plain", "affine", "frozen") if config.masked else ("affine",),
        "bias": (True, False) if config.masked else (True,),
        "sharing": ("none", "masks", "weights") if config.masked else ("none",),
    }
    parameters.check_fields(config, needed, "fairseq, or the paper's fork of it for masked models,")
    for stack in ("encoder", "decoder"):
        if any(group.name != "layers" for group in config.stack(stack).groups):
            raise UserError(
                f"model.{stack}_layers is {getattr(config, f'{stack}_layers')}, but all layers of a model of fairseq are alike"
            )


def entries(config: ModelConfig) -> tuple[list[Entry], dict[str, str]]:
    """All parameters, and the names of the copies of some, with the names of these."""
    found: list[Entry] = []
    copies: dict[str, str] = {}
    for path, whole in shapes(config).items():
        names = _names(path, config)
        transposed = path[-1] in ("kernel", "scores") and path[1] not in _TABLES
        layered = has_layer_axis(path[-1], whole)
        own = whole[1:] if layered else whole
        shape = own[::-1] if transposed else own
        for place, name in enumerate(names if layered else names[:1]):
            found.append(Entry(name, shape, path[1:], place if layered else None, transposed))
        if not layered:
            copies |= dict.fromkeys(names[1:], names[0])
    return found, copies


def _names(path: Path, config: ModelConfig) -> list[str]:
    """Returns fairseq's names of the leaf at `path`: one per layer, or one per module that uses a table."""
    _, module, *inner, leaf = path
    kind = _LEAVES[leaf]
    if module in _TABLES:
        return [f"{table}.{kind}" for table in _TABLES[module]]
    within = ".".join(MODULES[name] for name in inner if name in MODULES)
    return [f"{module}.layers.{layer}.{within}.{kind}" for layer in range(config.depth(module))]
