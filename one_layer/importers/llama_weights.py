"""The parameters of a causal model with `model.block=modern`, by the names of Hugging Face's `LlamaForCausalLM`.

Both compute the same layers: RMSNorm before each block, rotary positions with pairs half a head apart, SwiGLU, no biases. Hugging
Face stores a matrix as [fan_out, fan_in]. Only the ends differ: Llama does not scale its embedding; this program's is scaled by √d, and is
the output projection too.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from one_layer.importers.by_layer import Variables, check_blocks, exact, has_rms, layers, norm, outside
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

StateDict = dict[str, Float32[np.ndarray, "..."]]

MATRICES = {
    "self_attn.q_proj": ("self_attention", "query"),
    "self_attn.k_proj": ("self_attention", "key"),
    "self_attn.v_proj": ("self_attention", "value"),
    "self_attn.o_proj": ("self_attention", "output"),
    "mlp.gate_proj": ("ffn_gate",),
    "mlp.up_proj": ("ffn_in",),
    "mlp.down_proj": ("ffn_out",),
}
NORMS = {"input_layernorm": "self_attention_norm", "post_attention_layernorm": "ffn_norm"}
EMBEDDING, OUTPUT, FINAL_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


def export(config: ModelConfig, variables: Variables) -> StateDict:
    """The float32 state dict of a `LlamaForCausalLM` with the same function. Masked matrices are W ⊙ M, once for each layer.

    The embedding is stored twice, scaled by √d as the input and as it is as the output. Raises: UserError for another model.
    """
    check(config)
    applied = exact(config, variables)
    table = outside(config, applied)["target_embedding", "kernel"]
    scale, _ = norm(outside(config, applied, "decoder"), ("final_norm",), config.d_model)
    state = {EMBEDDING: table * np.float32(np.sqrt(config.d_model)), OUTPUT: table, FINAL_NORM: scale}
    for number, layer in enumerate(layers(config, applied, "decoder")):
        for name, path in MATRICES.items():
            state[f"model.layers.{number}.{name}.weight"] = layer[*path, "kernel"].T
        for name, ours in NORMS.items():
            state[f"model.layers.{number}.{name}.weight"], _ = norm(layer, (ours,), config.d_model)
    return {name: np.array(array, np.float32, order="C") for name, array in state.items()}


def check(config: ModelConfig) -> None:
    """Raises: UserError for a model that is no Llama."""
    if config.family != "decoder" or not config.modern:
        raise UserError(
            f"this model is a {config.network_family.describe(config)} with model.block={config.block}, but LlamaForCausalLM has the "
            "layers of causal models with model.block=modern; no other causal model can be exported"
        )
    check_blocks(config, "huggingface")
    if not has_rms(config):
        raise UserError(f"model.norm is {config.norm!r}, but LlamaForCausalLM has RMSNorm: rms or rms_plain")
