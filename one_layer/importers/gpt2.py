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
from one_layer.importers.by_layer import Arrays, Variables, check_state, placed
from one_layer.importers.config_json import activation, end_of_text, positive, refuse_others, whole
from one_layer.importers.llama_options import Options
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

EMBEDDING, _OUTPUT = "wte.weight", "lm_head.weight"
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
    d, depth, place = config.d_model, config.depth("decoder"), config.stack("decoder").groups[0].name
    names = without_prefix(state)
    table = (len(names.get(EMBEDDING, ())), d)
    wanted = {EMBEDDING: table, "wpe.weight": (config.max_positions, d), "ln_f.weight": (d,), "ln_f.bias": (d,)}
    wanted |= {_OUTPUT: table} if _OUTPUT in state else {}
    matrices = {
        "attn.c_attn": (d, 3 * d),
        "mlp.c_fc": (d, config.ffn),
        "mlp.c_proj": (config.ffn, d),
        "attn.c_proj": (d, d),
    }
    inside = {f"{name}.weight": shape for name, shape in matrices.items()} | {f"{name}.weight": (d,) for name in _NORMS}
    inside |= {name.replace("weight", "bias"): shape[-1:] for name, shape in inside.items()}
    wanted |= {f"h.{number}.{name}": shape for number in range(depth) for name, shape in inside.items()}
    check_state(names, wanted, others=(".attn.bias", ".attn.masked_bias"))  # the masks of attention
    arrays = {name: np.asarray(names[name], np.float32) for name in wanted}
    if not np.array_equal(arrays.get(_OUTPUT, arrays[EMBEDDING]), arrays[EMBEDDING]):
        raise UserError(
            f"{_OUTPUT} is another matrix than {EMBEDDING}, but the output projection of causal models here is their embedding; give "
            "a GPT-2 with tie_word_embeddings"
        )
    chosen = [np.zeros(d, np.float32) if row is None else arrays[EMBEDDING][row] for row in rows]
    found: Arrays = {("target_embedding", "kernel"): np.stack(chosen)}
    found["position_embedding", "kernel"] = np.pad(arrays["wpe.weight"], ((PAD + 1, 0), (0, 0)))
    for theirs, norm, linear in (("weight", "scale", "kernel"), ("bias", "bias", "bias")):
        stacked = {
            name: np.stack([arrays[f"h.{number}.{name}.{theirs}"] for number in range(depth)])
            for name in (*_NORMS, *matrices)
        }
        found["decoder", "final_norm", "layer_norm", norm] = arrays[f"ln_f.{theirs}"]
        found |= {("decoder", place, ours, "layer_norm", norm): stacked[name] for name, ours in _NORMS.items()}
        found |= {("decoder", place, *path, linear): stacked[name] for name, path in _LINEAR.items()}
        parts = zip(_ATTENTION, np.split(stacked["attn.c_attn"], 3, axis=-1), strict=True)
        found |= {("decoder", place, "self_attention", name, linear): part for name, part in parts}
    return placed(config, found)


def without_prefix(state: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by their names in `GPT2Model`; `GPT2LMHeadModel` puts `transformer.` before them."""
    return {name.removeprefix("transformer."): array for name, array in state.items()}
