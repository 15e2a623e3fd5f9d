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
from one_layer.importers.by_layer import Variables, check_all_read, parameter, placed
from one_layer.importers.config_json import activation, end_of_text, positive, refuse_others, whole
from one_layer.importers.llama_options import Options
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

EMBEDDING = "wte.weight"
_SIZES = {"d_model": "n_embd", "heads": "n_head", "decoder_layers": "n_layer", "max_positions": "n_positions"}
_FIXED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "quantization_config": None,
}
_ATTENTION = ("query", "key", "value")
_LINEAR = {"attn.c_proj": ("self_attention", "output"), "mlp.c_fc": ("ffn_in",), "mlp.c_proj": ("ffn_out",)}
_NORMS = {"ln_1": "self_attention_norm", "ln_2": "ffn_norm"}


def read_options(path: Path, options: dict[str, Any]) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model that is computed in another way."""
    model: dict[str, Any] = {key: whole(path, name, options.get(name)) for key, name in _SIZES.items()}
    model["ffn"] = whole(path, "n_inner", options.get("n_inner") or 4 * model["d_model"])
    refuse_others(path, "a GPT-2", {name: (options.get(name, value), value) for name, value in _FIXED.items()})
    eos = end_of_text(path, options, default=50256)
    model |= {"block": "paper", "norm": "affine", "bias": True, "positions": "learned"}
    function, epsilon = options.get("activation_function", "gelu_new"), options.get("layer_norm_epsilon", 1e-5)
    model |= {"activation": activation(path, "activation_function", function)}
    model |= {"norm_epsilon": positive(path, "layer_norm_epsilon", epsilon)}
    return Options(model, model["heads"], model["max_positions"], eos, tied=True)


def convert(state: Mapping[str, Any], config: ModelConfig, rows: Sequence[int | None]) -> Variables:
    """The variables of a model whose weights are those of a GPT-2, float32 NumPy arrays. The scores are the weights themselves.

    `rows` has the row of GPT-2's table for each token here; None is a row of zeros. Positions begin at row PAD + 1. Raises: UserError for
    parameters that do not fit.
    """
    d, place = config.d_model, config.stack("decoder").groups[0].name
    names = without_prefix(state)
    count = len(names.get(EMBEDDING, ()))
    table = parameter(names, EMBEDDING, (count, d))
    if "lm_head.weight" in state and not np.array_equal(np.asarray(state["lm_head.weight"], np.float32), table):
        raise UserError(
            f"lm_head.weight is another matrix than {EMBEDDING}, but the output projection of causal models here is their embedding; give "
            "a GPT-2 with tie_word_embeddings"
        )
    places = parameter(names, "wpe.weight", (config.max_positions, d))
    found: dict[tuple[str, ...], np.ndarray] = {
        ("target_embedding", "kernel"): np.stack(
            [np.zeros(d, np.float32) if row is None else table[row] for row in rows]
        ),
        ("position_embedding", "kernel"): np.pad(places, ((PAD + 1, 0), (0, 0))),
    }
    for leaf, theirs in (("scale", "weight"), ("bias", "bias")):
        found["decoder", "final_norm", "layer_norm", leaf] = parameter(names, f"ln_f.{theirs}", (d,))
        for name, ours in _NORMS.items():
            found["decoder", place, ours, "layer_norm", leaf] = _stacked(names, config, f"{name}.{theirs}", (d,))
    for leaf, theirs in (("kernel", "weight"), ("bias", "bias")):
        joined = _stacked(names, config, f"attn.c_attn.{theirs}", (d, 3 * d)[leaf == "bias" :])
        for name, part in zip(_ATTENTION, np.split(joined, 3, axis=-1), strict=True):
            found["decoder", place, "self_attention", name, leaf] = part
        for name, path in _LINEAR.items():
            shape = {"ffn_in": (d, config.ffn), "ffn_out": (config.ffn, d)}.get(path[0], (d, d))
            found["decoder", place, *path, leaf] = _stacked(names, config, f"{name}.{theirs}", shape[leaf == "bias" :])
    own = {f"{name}.{leaf}" for name in (*_NORMS, "attn.c_attn", *_LINEAR) for leaf in ("weight", "bias")}
    inside = {f"h.{number}.{name}" for number in range(config.depth("decoder")) for name in own}
    read = {EMBEDDING, "wpe.weight", "ln_f.weight", "ln_f.bias", "lm_head.weight", *inside}
    check_all_read(names, read, buffers=(".attn.bias", ".attn.masked_bias"))  # the masks of attention
    return placed(config, found)


def without_prefix(state: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by their names in `GPT2Model`; `GPT2LMHeadModel` puts `transformer.` before them."""
    return {name.removeprefix("transformer."): array for name, array in state.items()}


def _stacked(state: Mapping[str, Any], config: ModelConfig, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([parameter(state, f"h.{number}.{name}", shape) for number in range(config.depth("decoder"))])
