"""Llama's `config.json`, as Hugging Face writes it."""

from __future__ import annotations

from typing import Any

from one_layer.data.special_tokens import EOS, PAD
from one_layer.models import ModelConfig

EPSILON = 1e-5  # of every norm here
ROTARY_BASE = 10000.0


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
        "rms_norm_eps": EPSILON,
        "rope_theta": ROTARY_BASE,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        # A text begins with eos.
        **{"bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD},
    }
