"""GPT-2 in Hugging Face's format: its `config.json`, and its parameters as those of a causal model with learned positions.

Both compute the same layers: pre-LN with affine norms, biases everywhere, and a GELU by tanh. The embedding is not scaled, and is the
output projection too. GPT-2 stores a matrix as [fan_in, fan_out], as this program does, and those of queries, keys and values side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.special_tokens import PAD
from one_layer.importers.by_layer import Variables, placed
from one_layer.importers.llama_options import EPSILON, Options
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

EMBEDDING = "wte.weight"
_SIZES = {"d_model": "n_embd", "heads": "n_head", "decoder_layers": "n_layer", "max_positions": "n_positions"}
_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
_FIXED = {
    "layer_norm_epsilon": EPSILON,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_ATTENTION = ("query", "key", "value")
_LINEAR = {"attn.c_proj": ("self_attention", "output"), "mlp.c_fc": ("ffn_in",), "mlp.c_proj": ("ffn_out",)}
_NORMS = {"ln_1": "self_attention_norm", "ln_2": "ffn_norm"}


def read_options(path: Path, options: dict[str, Any]) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model that is computed in another way."""
    model: dict[str, Any] = {key: options.get(name) for key, name in _SIZES.items()}
    model["ffn"] = options.get("n_inner") or (model["d_model"] * 4 if type(model["d_model"]) is int else None)
    for key, value in model.items():
        if type(value) is not int or value < 1:
            raise UserError(
                f"{path}: {_SIZES.get(key, 'n_inner')} is {value!r:.60}; it must be a whole number of at least 1"
            )
    for name, value in _FIXED.items():
        if (found := options.get(name, value)) != value:
            raise UserError(f"{path}: {name} is {found!r:.60}, but this program computes a GPT-2 with {value!r}")
    activation, eos = options.get("activation_function", "gelu_new"), options.get("eos_token_id", 50256)
    if activation not in _ACTIVATIONS:
        raise UserError(f"{path}: activation_function is {activation!r:.60}; known are {', '.join(_ACTIVATIONS)}")
    if type(eos) is not int:
        raise UserError(f"{path}: eos_token_id is {eos!r:.60}; it must be the id of the token that ends a text")
    model |= {"block": "paper", "norm": "affine", "bias": True, "positions": "learned"}
    model |= {"activation": _ACTIVATIONS[activation]}
    return Options(model, model["heads"], model["max_positions"], eos)


def convert(state: Mapping[str, Any], config: ModelConfig, rows: Sequence[int | None]) -> Variables:
    """The variables of a model whose weights are those of a GPT-2, float32 NumPy arrays. The scores are the weights themselves.

    `rows` has the row of GPT-2's table for each token here; None is a row of zeros. Positions begin at row PAD + 1. Raises: UserError for
    parameters that do not fit.
    """
    d, place = config.d_model, config.stack("decoder").groups[0].name
    names = without_prefix(state)
    count = len(names.get(EMBEDDING, ()))
    table = _parameter(names, EMBEDDING, (count, d))
    if "lm_head.weight" in state and not np.array_equal(np.asarray(state["lm_head.weight"], np.float32), table):
        raise UserError(
            f"lm_head.weight is another matrix than {EMBEDDING}, but the output projection of causal models here is their embedding; give "
            "a GPT-2 with tie_word_embeddings"
        )
    places = _parameter(names, "wpe.weight", (config.max_positions, d))
    found: dict[tuple[str, ...], np.ndarray] = {
        ("target_embedding", "kernel"): np.stack(
            [np.zeros(d, np.float32) if row is None else table[row] for row in rows]
        ),
        ("position_embedding", "kernel"): np.pad(places, ((PAD + 1, 0), (0, 0))),
    }
    for leaf, theirs in (("scale", "weight"), ("bias", "bias")):
        found["decoder", "final_norm", "layer_norm", leaf] = _parameter(names, f"ln_f.{theirs}", (d,))
        for name, ours in _NORMS.items():
            found["decoder", place, ours, "layer_norm", leaf] = _stacked(names, config, f"{name}.{theirs}", (d,))
    for leaf, theirs in (("kernel", "weight"), ("bias", "bias")):
        joined = _stacked(names, config, f"attn.c_attn.{theirs}", (d, 3 * d)[leaf == "bias" :])
        for name, part in zip(_ATTENTION, np.split(joined, 3, axis=-1), strict=True):
            found["decoder", place, "self_attention", name, leaf] = part
        for name, path in _LINEAR.items():
            shape = {"ffn_in": (d, config.ffn), "ffn_out": (config.ffn, d)}.get(path[0], (d, d))
            found["decoder", place, *path, leaf] = _stacked(names, config, f"{name}.{theirs}", shape[leaf == "bias" :])
    return placed(config, found)


def without_prefix(state: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by their names in `GPT2Model`; `GPT2LMHeadModel` puts `transformer.` before them."""
    return {name.removeprefix("transformer."): array for name, array in state.items()}


def _stacked(state: Mapping[str, Any], config: ModelConfig, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([_parameter(state, f"h.{number}.{name}", shape) for number in range(config.depth("decoder"))])


def _parameter(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    found = np.asarray(state[name], np.float32) if name in state else None
    if found is None or found.shape != shape:
        has = "missing" if found is None else list(found.shape)
        raise UserError(f"the parameter {name} is {has}, and not {list(shape)}; give a folder as it was written")
    return found
