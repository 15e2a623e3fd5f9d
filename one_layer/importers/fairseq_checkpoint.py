"""Reads fairseq's checkpoints, which are PyTorch files, without running any code that they contain; and what they say of their model.

Sizes and sharing are read from the tensors. Only the training options give the rest (the heads, the fraction that masks keep). The
options are those of fairseq's Transformer and of the paper's code (sIncerass/one_layer_lottery_ticket @ 0a20fb9).
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers.fairseq import SELECTIONS
from one_layer.importers.parameters import StateDict
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
_NORMS = {"masked_layernorm": "plain", "normal_layernorm": "affine", "normal_layernorm_no_learn": "frozen"}
# Options that change the model, with the values that this project supports. `dynamic_scaling` is not supported: the paper's code
# scales only the masks of the tables, while `ModelConfig.dynamic_scale` scales every mask.
_ONLY: dict[str, tuple[Any, ...]] = {
    "task": ("translation",),
    "activation_fn": ("relu", "gelu"),
    "share_mask": tuple(_SHARING),
    "prune_method": tuple(SELECTIONS),
    "mask_layernorm_type": tuple(_NORMS),
    **dict.fromkeys(
        (
            *("encoder_normalize_before", "decoder_normalize_before", "encoder_learned_pos"),
            *("decoder_learned_pos", "no_token_positional_embeddings", "no_scale_embedding"),
            *("layernorm_embedding", "adaptive_input", "adaptive_softmax_cutoff", "no_cross_attention"),
            *("cross_self_attention", "encoder_layers_to_keep", "decoder_layers_to_keep", "quant_noise_scalar"),
            *("char_inputs", "weight_trainable", "dynamic_scaling"),
        ),
        (False,),
    ),
}


def read_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns the tensors of `model` and the training options of a fairseq checkpoint.

    Raises: UserError for a file that cannot be read, or cannot be read without running its code, and if torch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise UserError(
            "fairseq's files need torch, which is not installed; run .venv/bin/pip install -r requirements-torch.txt"
        ) from None
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # torch and pickle raise many types of exception for a damaged file or another format
        raise UserError(_why(path, str(error))) from None
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in model.values()):
        raise UserError(
            f"{path} has no tensors under the name 'model'; give a checkpoint that fairseq's training wrote"
        )
    state = {name: (t.float() if t.is_floating_point() else t).detach().numpy() for name, t in model.items()}
    return state, _options(content)


def check_rows(vocabulary: Vocabulary, path: str | Path, rows: int, table: str) -> None:
    """Checks that the dictionary in `path` has as many types as the table has rows. Raises: UserError if not."""
    if len(vocabulary) != rows:
        raise UserError(
            f"{path} has {len(vocabulary):,} types (4 special types and one for each line), but {table} has {rows:,} rows; "
            "give the dict.txt that the model was trained with"
        )


def _options(content: dict[str, Any]) -> dict[str, Any]:
    """Returns the training options. Older files have one namespace `args`; newer files have `cfg` with `task` and `model`."""
    sections = content.get("cfg")
    newer = [sections.get(name) for name in ("task", "model")] if isinstance(sections, dict) else []
    found: dict[str, Any] = {}
    for section in (content.get("args"), *newer):
        if isinstance(section, dict | argparse.Namespace):
            found.update(section if isinstance(section, dict) else vars(section))
    return found


def _why(path: Path, problem: str) -> str:
    needed = re.search(r"GLOBAL (\S+)", problem)
    if needed is None:
        sentence = problem.partition(".")[0][:200]
        detail = f" ({sentence!r})" if " " in sentence else ""  # some errors are a bare number
        return f"{path} is not a whole file of torch.save{detail}; create it or copy it again"
    return (
        f"{path} holds an object of type {needed[1]}, and loading such objects can run any program; if you trust the file, "
        "save only the needed parts: c = torch.load(FILE, weights_only=False); "
        "torch.save({'model': c['model'], 'args': c['args'] or c['cfg'].model}, NEW)"
    )


def read_options(options: Mapping[str, Any], state: StateDict) -> dict[str, Any]:
    """Returns the fields of `ModelConfig` that the training options and the tensors of a checkpoint determine.

    Raises: UserError that names every unsupported option, and for tensors that are not those of a Transformer.
    """
    tables = [state.get(f"{stack}.embed_tokens.weight") for stack in ("encoder", "decoder")]
    if any(table is None or table.ndim != 2 for table in tables):
        raise UserError(
            "the checkpoint has no matrix encoder.embed_tokens.weight or decoder.embed_tokens.weight; give the checkpoint of a fairseq "
            "Transformer for translation, because no other model can be imported"
        )
    _refuse(options)
    found = _sizes(state)
    found.update({ours: options[theirs] for theirs, ours in _SAME.items() if options.get(theirs) is not None})
    if any(name.endswith(".scores") for name in state):
        return found | _masked(options, state)
    return found | {"weights": "dense", "sharing": "none", "embedding": "trained"}


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
        "ffn": 1 if hidden is None or hidden.ndim == 0 else len(hidden),
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
    if norm := options.get("mask_layernorm_type"):
        found["norm"] = _NORMS[norm]
    if method := options.get("prune_method"):
        found["selection"] = SELECTIONS[method]
    if (ratio := options.get("prune_ratio")) is not None:
        if type(ratio) not in (int, float):
            raise UserError(f"the checkpoint's prune_ratio is {ratio!r:.60}, which is no number; copy the file again")
        beyond = found.get("selection", "magnitude").endswith("threshold")
        found["threshold" if beyond else "keep"] = float(ratio)
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
