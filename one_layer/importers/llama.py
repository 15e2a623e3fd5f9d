"""Llama in Hugging Face's format: its `config.json`, and its parameters as those of a causal model with `model.block=modern`, and back.

Both compute the same layers: RMSNorm before each block, rotary positions with pairs half a head apart, SwiGLU, no biases. Hugging
Face stores a matrix as [fan_out, fan_in]. Only the ends differ: Llama does not scale its embedding; this program's is scaled by √d, and is
the output projection too.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from one_layer.data.special_tokens import EOS, PAD
from one_layer.importers import parameters
from one_layer.importers.config_json import SIZES, ConfigJson
from one_layer.importers.parameters import Entry, Named, StateDict, Variables
from one_layer.layers.settings import ROTARY_BASE
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
_SIZES = {**SIZES, "decoder_layers": "num_hidden_layers"}
_LAYER = {
    "self_attn.q_proj": ("self_attention", "query"),
    "self_attn.k_proj": ("self_attention", "key"),
    "self_attn.v_proj": ("self_attention", "value"),
    "self_attn.o_proj": ("self_attention", "output"),
    "mlp.gate_proj": ("ffn_gate",),
    "mlp.up_proj": ("ffn_in",),
    "mlp.down_proj": ("ffn_out",),
    "input_layernorm": ("self_attention_norm", "layer_norm"),
    "post_attention_layernorm": ("ffn_norm", "layer_norm"),
}
_FINAL_NORM = ("decoder", "final_norm", "layer_norm")


class Options(NamedTuple):
    """Of a Llama or a GPT-2: keys of `model`, the heads of keys and values, the longest text in tokens, and the id that ends a text.

    `tied`: its embedding is its output projection too.
    """

    model: dict[str, Any]
    key_heads: int
    context: int
    eos: int
    tied: bool


def read_options(given: ConfigJson) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model that is computed in another way."""
    rotary = given.get("rope_parameters") or given.get("rope_scaling") or {}
    rotary = rotary if isinstance(rotary, dict) else {"rope_type": rotary}
    model: dict[str, Any] = {key: given.whole(name) for key, name in _SIZES.items()}
    heads, head_dim, eos = model["heads"], model["d_model"] // model["heads"], given.end_of_text()
    key_heads = given.whole("num_key_value_heads", heads)
    context = given.whole("max_position_embeddings", 2048)
    needed = {
        "model_type": "llama",
        "hidden_act": "silu",
        "rope_type": "default",
        "attention_bias": False,
        "mlp_bias": False,
        "head_dim": head_dim,
        "quantization_config": None,
        "num_attention_heads modulo num_key_value_heads": 0,
    }
    found = {
        "model_type": given.get("model_type"),
        "rope_type": rotary.get("rope_type", rotary.get("type", "default")),
        "head_dim": given.get("head_dim") or head_dim,
        "num_attention_heads modulo num_key_value_heads": heads % key_heads,
    }
    given.refuse_others("a Llama", needed, **found)
    model |= {"block": "modern", "norm": "rms", "norm_epsilon": given.positive("rms_norm_eps", 1e-6)}
    if "rope_theta" in rotary:  # it counts before that of the whole file
        given["rope_theta"] = rotary["rope_theta"]
    model["rotary_base"] = given.positive("rope_theta", ROTARY_BASE)
    return Options(model, key_heads, context, eos, tied=given.get("tie_word_embeddings") is True)


def write_options(config: ModelConfig, context: int) -> dict[str, Any]:
    """The content of config.json for a model that `export` writes; `context` is its longest text."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **{name: getattr(config, key) for key, name in SIZES.items()},
        "num_key_value_heads": config.heads,
        "num_hidden_layers": config.depth("decoder"),
        "vocab_size": config.target_vocab,
        "max_position_embeddings": context,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rotary_base,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        # A text begins with eos.
        **{"bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD},
    }


def export(config: ModelConfig, variables: Variables) -> Named:
    """The float32 state dict of a `LlamaForCausalLM` with the same function. Masked matrices are W ⊙ M, once for each layer.

    The embedding is stored twice, scaled by √d as the input and as it is as the output. Raises: UserError for another model.
    """
    check(config)
    arrays = parameters.by_path(parameters.exact(config, variables))
    table = arrays["target_embedding", "kernel"]
    ends = {EMBEDDING: table * np.float32(np.sqrt(config.d_model)), OUTPUT: table}
    return ends | parameters.written(arrays, _entries(config, config.heads))


def convert(state: StateDict, config: ModelConfig, rows: Sequence[int | None], key_heads: int) -> Variables:
    """The variables of a model whose weights are those of a Llama, float32 NumPy arrays. The scores are the weights themselves.

    So the masks begin as those that keep the largest weights. `rows` has the row of Llama's table for each token here, and None for one
    that it lacks. Heads share keys and values where there are fewer `key_heads`: here each has its own copy. Raises: UserError for
    parameters that do not fit, or an output projection that is no multiple of the embedding.
    """
    check(config)
    table = (len(state.get(EMBEDDING, ())), config.d_model)
    entries = list(_entries(config, key_heads))
    ends = dict.fromkeys([EMBEDDING, *([OUTPUT] if OUTPUT in state else [])], table)
    parameters.check_folder(state, ends | {each.name: each.shape for each in entries}, unused=(".rotary_emb.inv_freq",))
    found = parameters.read(state, entries)
    for path in found:
        if path[-2] in ("key", "value"):  # [layer, d, head by head]
            heads = found[path].reshape(*found[path].shape[:2], key_heads, -1)
            found[path] = np.repeat(heads, config.heads // key_heads, axis=2).reshape(-1, *[config.d_model] * 2)
    embedding, factor = _table({name: np.asarray(state[name], np.float32) for name in ends}, config, rows)
    found["target_embedding", "kernel"] = embedding
    found[*_FINAL_NORM, "scale"] *= factor
    return parameters.placed(config, found)


def _entries(config: ModelConfig, key_heads: int) -> Iterator[Entry]:
    """All parameters without the embedding and the output projection."""
    d, ffn, narrow = config.d_model, config.ffn, config.d_model // config.heads * key_heads
    fan_out = {"key": narrow, "value": narrow, "ffn_gate": ffn, "ffn_in": ffn}
    yield from parameters.of_module("model.norm", _FINAL_NORM, (d, d), bias=False)
    for number, group, place in parameters.places(config, "decoder"):
        for name, inner in _LAYER.items():
            shape = fan_out.get(inner[-1], d), ffn if inner == ("ffn_out",) else d
            yield from parameters.of_module(f"model.layers.{number}.{name}", (*group, *inner), shape, place, bias=False)


def _table(state: StateDict, config: ModelConfig, rows: Sequence[int | None]) -> tuple[np.ndarray, float]:
    """The table here, and the factor of the last norm: with it the table gives Llama's logits, and, times √d, Llama's embedding."""
    theirs = state[EMBEDDING]
    output = state.get(OUTPUT, theirs)
    ratio = np.float32(np.linalg.norm(theirs) / max(float(np.linalg.norm(output)), 1e-30))
    if not np.allclose(output * ratio, theirs, rtol=1e-5, atol=1e-6):
        raise another_output(OUTPUT, EMBEDDING, "a Llama")
    root = np.float32(np.sqrt(config.d_model))
    return chosen(theirs / root, rows), float(root / ratio)


def chosen(table: np.ndarray, rows: Sequence[int | None]) -> Float32[np.ndarray, "rows d"]:
    """These rows of a table; for None the mean of the others.

    exp is convex, so a token with the mean of n logits never has more than 1/n of their probability: their nll hardly changes.
    """
    mean = table[[row for row in rows if row is not None]].mean(axis=0)
    return np.stack([mean if row is None else table[row] for row in rows])


def another_output(output: str, embedding: str, model: str) -> UserError:
    """The error for an output projection that is not the embedding."""
    return UserError(
        f"{output} is another matrix than {embedding}, but the output projection of causal models here is their embedding; give "
        f"{model} with tie_word_embeddings"
    )


def check(config: ModelConfig) -> None:
    """Raises: UserError for a model that is no Llama."""
    if config.family != "decoder" or not config.modern:
        raise UserError(
            f"this model is a {config.network_family.describe(config)} with model.block={config.block}, but LlamaForCausalLM has the "
            "layers of causal models with model.block=modern; no other causal model can be exported"
        )
    parameters.check_blocks(config, "huggingface")
    if not parameters.has_rms(config):
        raise UserError(f"model.norm is {config.norm!r}, but LlamaForCausalLM has RMSNorm: rms or rms_plain")
