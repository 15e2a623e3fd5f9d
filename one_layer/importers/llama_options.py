"""Llama's `config.json`, as Hugging Face writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from one_layer.data.special_tokens import EOS, PAD
from one_layer.importers.config_json import end_of_text, positive, refuse_others, whole
from one_layer.layers.settings import ROTARY_BASE
from one_layer.models import ModelConfig

_SIZES = {
    "d_model": "hidden_size",
    "ffn": "intermediate_size",
    "heads": "num_attention_heads",
    "decoder_layers": "num_hidden_layers",
}


class Options(NamedTuple):
    """Of a Llama or a GPT-2: keys of `model`, the heads of keys and values, the longest text in tokens, and the id that ends a text.

    `tied`: its embedding is its output projection too.
    """

    model: dict[str, Any]
    key_heads: int
    context: int
    eos: int
    tied: bool


def read_options(path: Path, options: dict[str, Any]) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model that is computed in another way."""
    rotary = options.get("rope_parameters") or options.get("rope_scaling") or {}
    rotary = rotary if isinstance(rotary, dict) else {"rope_type": rotary}
    model: dict[str, Any] = {key: whole(path, name, options.get(name)) for key, name in _SIZES.items()}
    heads, eos = model["heads"], end_of_text(path, options)
    key_heads = whole(path, "num_key_value_heads", options.get("num_key_value_heads") or heads)
    context = whole(path, "max_position_embeddings", options.get("max_position_embeddings", 2048))
    needed: dict[str, tuple[Any, Any]] = {
        "model_type": (options.get("model_type"), "llama"),
        "hidden_act": (options.get("hidden_act", "silu"), "silu"),
        "rope_type": (rotary.get("rope_type", rotary.get("type", "default")), "default"),
        "attention_bias": (options.get("attention_bias", False), False),
        "mlp_bias": (options.get("mlp_bias", False), False),
        "head_dim": (options.get("head_dim") or model["d_model"] // heads, model["d_model"] // heads),
        "quantization_config": (options.get("quantization_config"), None),
        "num_attention_heads modulo num_key_value_heads": (heads % key_heads, 0),
    }
    refuse_others(path, "a Llama", needed)
    model |= {"block": "modern", "norm": "rms"}
    model |= {"norm_epsilon": positive(path, "rms_norm_eps", options.get("rms_norm_eps", 1e-6))}
    base = rotary.get("rope_theta", options.get("rope_theta", ROTARY_BASE))
    model |= {"rotary_base": positive(path, "rope_theta", base)}
    return Options(model, key_heads, context, eos, tied=options.get("tie_word_embeddings") is True)


def write_options(config: ModelConfig, context: int) -> dict[str, Any]:
    """The content of config.json for a model that `one_layer.importers.llama_weights.export` writes; `context` is its longest text."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config.d_model,
        "intermediate_size": config.ffn,
        "num_attention_heads": config.heads,
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
