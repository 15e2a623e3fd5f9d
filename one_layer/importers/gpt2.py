"""GPT-2 in Hugging Face's format: its `config.json`, and its parameters as those of a causal model with learned positions.

Both compute the same layers: pre-LN with affine norms, biases everywhere, and a GELU by tanh. The embedding is not scaled, and is the
output projection too. GPT-2 stores a matrix as [fan_in, fan_out], as this program does, and those of queries, keys and values side by side.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from one_layer.data.special_tokens import PAD
from one_layer.importers import parameters
from one_layer.importers.config_json import ConfigJson
from one_layer.importers.llama import Options, another_output, chosen
from one_layer.importers.parameters import Entry, Path, StateDict, Variables
from one_layer.models import ModelConfig

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
_LAYER: dict[str, Path] = {
    "attn.c_attn": ("self_attention", "+".join(_ATTENTION)),
    "attn.c_proj": ("self_attention", "output"),
    "mlp.c_fc": ("ffn_in",),
    "mlp.c_proj": ("ffn_out",),
    "ln_1": ("self_attention_norm", "layer_norm"),
    "ln_2": ("ffn_norm", "layer_norm"),
}


def read_options(given: ConfigJson) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model that is computed in another way."""
    model: dict[str, Any] = {key: given.whole(name) for key, name in _SIZES.items()}
    model["ffn"] = given.whole("n_inner", 4 * model["d_model"])
    given.refuse_others("a GPT-2", _FIXED)
    eos = given.end_of_text(default=50256)
    model |= {"block": "paper", "norm": "affine", "bias": True, "positions": "learned"}
    model |= {"activation": given.activation("activation_function", "gelu_new")}
    model |= {"norm_epsilon": given.positive("layer_norm_epsilon", 1e-5)}
    return Options(model, model["heads"], model["max_positions"], eos, tied=True)


def convert(state: StateDict, config: ModelConfig, rows: Sequence[int | None], key_heads: int) -> Variables:
    """The variables of a model whose weights are those of a GPT-2, float32 NumPy arrays. The scores are the weights themselves.

    `state` has the names of `GPT2Model`. `rows` has the row of GPT-2's table for each token here; None for one that it lacks. Positions
    begin at row PAD + 1. All heads have keys and values (`key_heads`). Raises: UserError for parameters that do not fit.
    """
    wanted = {each.name: each.shape for each in _entries(config, len(state.get(EMBEDDING, ())))}
    tied = {_OUTPUT: wanted[EMBEDDING]} if _OUTPUT in state else {}
    parameters.check_folder(state, wanted | tied, unused=(".attn.bias", ".attn.masked_bias"))  # the masks of attention
    if not np.array_equal(state.get(_OUTPUT, state[EMBEDDING]), state[EMBEDDING]):
        raise another_output(_OUTPUT, EMBEDDING, "a GPT-2")
    found = parameters.read(state, _entries(config, len(state[EMBEDDING])))
    found["target_embedding", "kernel"] = chosen(found["target_embedding", "kernel"], rows)
    found["position_embedding", "kernel"] = np.pad(found["position_embedding", "kernel"], ((PAD + 1, 0), (0, 0)))
    for path in [path for path in found if path[-2] == _LAYER["attn.c_attn"][-1]]:
        parts = zip(_ATTENTION, np.split(found.pop(path), len(_ATTENTION), axis=-1), strict=True)
        found |= {(*path[:-2], name, path[-1]): part for name, part in parts}
    return parameters.placed(config, found)


def _entries(config: ModelConfig, rows: int) -> Iterator[Entry]:
    """All parameters; `rows` are those of the embedding."""
    d, ffn = config.d_model, config.ffn
    yield Entry(EMBEDDING, (rows, d), ("target_embedding", "kernel"))
    yield Entry("wpe.weight", (config.max_positions, d), ("position_embedding", "kernel"))
    yield from parameters.of_module("ln_f", ("decoder", "final_norm", "layer_norm"), (d, d))
    fan_out = {"attn.c_attn": len(_ATTENTION) * d, "mlp.c_fc": ffn}
    for number, group, place in parameters.places(config, "decoder"):
        for name, inner in _LAYER.items():
            shape = fan_out.get(name, d), ffn if name == "mlp.c_proj" else d
            yield from parameters.of_module(f"h.{number}.{name}", (*group, *inner), shape, place, transposed=False)
