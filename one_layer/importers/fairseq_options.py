"""Converts what a fairseq checkpoint says about its model into fields of `ModelConfig`, and back.

Sizes and sharing are read from the tensors. Only the training options give the rest (the heads, the fraction that masks keep). The
options are those of fairseq's Transformer and of the paper's code (sIncerass/one_layer_lottery_ticket @ 0a20fb9).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from one_layer.importers.fairseq import StateDict, check_translates
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError

_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")
_SAME = {
    "encoder_attention_heads": "heads",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
    "activation_fn": "activation",
}
_SHARING = {"none": "none", "layer_weights": "weights", "layer_mask": "masks"}
_SELECTIONS = {
    "super_mask": "magnitude",
    "topk": "score",
    "threshold": "threshold",
    "sigmoid_threshold": "sigmoid_threshold",
    "signed_threshold": "signed_threshold",
}
_NORMS = {"masked_layernorm": "plain", "normal_layernorm": "affine", "normal_layernorm_no_learn": "frozen"}
# Options that change the model, with the values that this project supports. `dynamic_scaling` is not supported: the paper's code
# scales only the masks of the tables, while `ModelConfig.dynamic_scale` scales every mask.
_ONLY: dict[str, tuple[Any, ...]] = {
    "task": ("translation",),
    "activation_fn": ("relu", "gelu"),
    "share_mask": tuple(_SHARING),
    "prune_method": tuple(_SELECTIONS),
    "mask_layernorm_type": tuple(_NORMS),
    **dict.fromkeys(
        (
            "encoder_normalize_before",
            "decoder_normalize_before",
            "encoder_learned_pos",
            "decoder_learned_pos",
            "no_token_positional_embeddings",
            "no_scale_embedding",
            "layernorm_embedding",
            "adaptive_input",
            "adaptive_softmax_cutoff",
            "no_cross_attention",
            "cross_self_attention",
            "encoder_layers_to_keep",
            "decoder_layers_to_keep",
            "quant_noise_scalar",
            "char_inputs",
            "weight_trainable",
            "dynamic_scaling",
        ),
        (False,),
    ),
}


def read_options(options: Mapping[str, Any], state: StateDict) -> dict[str, Any]:
    """Returns the fields of `ModelConfig` that the training options and the tensors of a checkpoint determine.

    Raises: UserError that names every unsupported option, and for tensors that are not those of a Transformer.
    """
    if "encoder.embed_tokens.weight" not in state or "decoder.embed_tokens.weight" not in state:
        raise UserError(
            "the checkpoint has no encoder.embed_tokens.weight or no decoder.embed_tokens.weight; give the checkpoint of a fairseq "
            "Transformer for translation, because no other model can be imported"
        )
    _refuse(options)
    found = _sizes(state)
    found.update({ours: options[theirs] for theirs, ours in _SAME.items() if options.get(theirs) is not None})
    if any(name.endswith(".scores") for name in state):
        return found | _masked(options, state)
    return found | {"weights": "dense", "sharing": "none", "embedding": "trained"}


def write_options(config: ModelConfig, languages: tuple[str, str]) -> dict[str, Any]:
    """Returns the options with which fairseq, or the paper's fork of it, builds this model. Raises: UserError if neither can."""
    check_translates(config)
    if config.masked and config.dynamic_scale:
        raise UserError(
            "model.dynamic_scale is True, which cannot be exported: the paper's code scales only the masks of tables; export a "
            "model with model.dynamic_scale=False"
        )
    if config.activation not in _ONLY["activation_fn"]:
        raise UserError(
            f"model.activation is {config.activation!r}; only {' and '.join(_ONLY['activation_fn'])} can be exported"
        )
    options: dict[str, Any] = {"task": "translation", "source_lang": languages[0], "target_lang": languages[1]}
    for stack in ("encoder", "decoder"):
        options[f"{stack}_embed_dim"] = config.d_model
        options[f"{stack}_ffn_embed_dim"] = config.ffn
        options[f"{stack}_attention_heads"] = config.heads
        options[f"{stack}_layers"] = config.depth(stack)
        options[f"{stack}_normalize_before"] = options[f"{stack}_learned_pos"] = False
    options |= {theirs: getattr(config, ours) for theirs, ours in _SAME.items()}
    options |= {
        "arch": "masked_transformer" if config.masked else "transformer",
        "share_all_embeddings": config.shared_embedding,
        "share_decoder_input_output_embed": True,
        "left_pad_source": True,
        "left_pad_target": False,
        "max_source_positions": 1024,
        "max_target_positions": 1024,
    }
    return options | (_masked_options(config) if config.masked else {})


def _masked_options(config: ModelConfig) -> dict[str, Any]:
    def theirs(names: dict[str, str], value: str | None) -> str:
        return next(name for name, ours in names.items() if ours == value)

    return {
        "share_mask": theirs(_SHARING, config.sharing),
        "prune_method": theirs(_SELECTIONS, config.selection),
        "prune_ratio": config.threshold if config.selection.endswith("threshold") else config.keep,
        "mask_layernorm_type": theirs(_NORMS, config.norm),
        "need_bias": config.bias,
        "share_bias": False,
        "embed_no_mask": config.embedding != "masked",
        "dynamic_scaling": False,
        "weight_trainable": False,
        # Initialisation, which has no effect because the file holds all values.
        "init": "kaiming_uniform",
        "scale_fan": False,
        "init_embedding_seperate": False,  # the fork's own spelling
        "mask_init": "standard",
        "mask_constant": 0.0,
    }


def _refuse(options: Mapping[str, Any]) -> None:
    """Raises UserError that names all unsupported options. An option that is off may be False, None, 0 or empty."""
    wrong = {
        name: f"{options[name]!r}, but must be {' or '.join(map(repr, known))}"
        for name, known in _ONLY.items()
        if options.get(name) and options[name] not in known
    }
    for name in ("embed_dim", "ffn_embed_dim", "attention_heads"):
        pair = [options.get(f"{stack}_{name}") for stack in ("encoder", "decoder")]
        if None not in pair and pair[0] != pair[1]:
            wrong[f"decoder_{name}"] = f"{pair[1]!r}, but must be the encoder's {pair[0]!r}"
    if wrong:
        stated = "; ".join(f"{name} is {value}" for name, value in wrong.items())
        raise UserError(f"the checkpoint's model is of a kind that this project does not support: {stated}")


def _sizes(state: StateDict) -> dict[str, Any]:
    """Returns the fields that the tensors of any model show."""
    pairs = [[f"{stack}.embed_tokens.{kind}" for stack in ("encoder", "decoder")] for kind in ("weight", "scores")]
    hidden = state.get("encoder.layers.0.fc1.weight")
    return {
        "d_model": state["encoder.embed_tokens.weight"].shape[-1],
        "ffn": 1 if hidden is None else len(hidden),
        "encoder_layers": _depth(state, "encoder"),
        "decoder_layers": _depth(state, "decoder"),
        "shared_embedding": all(_equal(state, *pair) for pair in pairs if pair[0] in state),
        "norm": "affine" if "encoder.layers.0.final_layer_norm.weight" in state else "plain",
        "bias": "encoder.layers.0.fc1.bias" in state,
    }


def _masked(options: Mapping[str, Any], state: StateDict) -> dict[str, Any]:
    """Returns the fields of a masked model: what its layers share, and how its masks are made.

    If the options do not say what the layers share, equal tensors show it.
    """
    kind = "layer_weights" if _copied(state, "fc1.weight") else "layer_mask" if _copied(state, "scores") else "none"
    sharing = _SHARING[options.get("share_mask") or kind]
    found: dict[str, Any] = {
        "weights": "one_layer" if sharing == "weights" else "multi_layer",
        "sharing": sharing,
        "embedding": "masked" if "encoder.embed_tokens.scores" in state else "frozen",
        # The paper's code shares every parameter that is named "weight", and so a norm's scale too.
        "share_norm_scale": sharing == "weights" and _copied(state, "layer_norm.weight"),
    }
    if options.get("mask_layernorm_type") is not None:
        found["norm"] = _NORMS[options["mask_layernorm_type"]]
    return found | _selection(options)


def _selection(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that say how masks are made, as far as the options give them."""
    found: dict[str, Any] = {}
    if options.get("prune_method") is not None:
        found["selection"] = _SELECTIONS[options["prune_method"]]
    if options.get("prune_ratio") is not None:
        beyond = found.get("selection", "magnitude").endswith("threshold")
        found["threshold" if beyond else "keep"] = float(options["prune_ratio"])
    return found


def _depth(state: StateDict, stack: str) -> int:
    layers = [int(match[2]) for name in state if (match := _LAYER.match(name)) and match[1] == stack]
    return max(layers, default=0) + 1


def _copied(state: StateDict, kind: str) -> bool:
    """Whether tensors of this name exist and, in both stacks, every layer's tensor equals the first layer's."""
    names = [name for name in state if _LAYER.match(name) and name.endswith(kind)]
    return bool(names) and all(_equal(state, name, _LAYER.sub(r"\1.layers.0.", name, count=1)) for name in names)


def _equal(state: StateDict, name: str, other: str) -> bool:
    return name in state and other in state and np.array_equal(state[name], state[other])
