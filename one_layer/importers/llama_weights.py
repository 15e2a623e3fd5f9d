"""The parameters of a causal model with `model.block=modern`, by the names of Hugging Face's `LlamaForCausalLM`, and back.

Both compute the same layers: RMSNorm before each block, rotary positions with pairs half a head apart, SwiGLU, no biases. Hugging
Face stores a matrix as [fan_out, fan_in]. Only the ends differ: Llama does not scale its embedding; this program's is scaled by √d, and is
the output projection too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from one_layer.importers.by_layer import (
    Path,
    Variables,
    check_blocks,
    check_state,
    exact,
    has_rms,
    layers,
    norm,
    outside,
    placed,
)
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


def convert(state: Mapping[str, Any], config: ModelConfig, rows: Sequence[int | None], key_heads: int) -> Variables:
    """The variables of a model whose weights are those of a Llama, float32 NumPy arrays. The scores are the weights themselves.

    So the masks begin as those that keep the largest weights. `rows` has the row of Llama's table for each token here; None is a row of
    zeros. Heads share keys and values where there are fewer `key_heads`: here each has its own copy. Raises: UserError for parameters that
    do not fit, or an output projection that is no multiple of the embedding.
    """
    check(config)
    d, depth, place = config.d_model, config.depth("decoder"), config.stack("decoder").groups[0].name
    narrow = d // config.heads * key_heads
    shapes: dict[str, tuple[int, ...]] = {
        name: (d, d) if name.startswith("self_attn") else (config.ffn, d) for name in MATRICES
    }
    shapes |= {"self_attn.k_proj": (narrow, d), "self_attn.v_proj": (narrow, d), "mlp.down_proj": (d, config.ffn)}
    shapes |= dict.fromkeys(NORMS, (d,))
    table = (len(state.get(EMBEDDING, ())), d)
    wanted: dict[str, tuple[int, ...]] = {EMBEDDING: table, FINAL_NORM: (d,)} | (
        {OUTPUT: table} if OUTPUT in state else {}
    )
    wanted |= {_in_layer(number, name): shape for number in range(depth) for name, shape in shapes.items()}
    check_state(state, wanted, others=(".rotary_emb.inv_freq",))
    arrays = {name: np.asarray(state[name], np.float32) for name in wanted}
    embedding, factor = _table(arrays, config, rows)
    found: dict[Path, np.ndarray] = {("target_embedding", "kernel"): embedding}
    found["decoder", "final_norm", "layer_norm", "scale"] = arrays[FINAL_NORM] * factor
    for name, path in MATRICES.items():
        own = [arrays[_in_layer(number, name)] for number in range(depth)]
        if path[-1] in ("key", "value"):
            own = [_each_head(each, config) for each in own]
        found["decoder", place, *path, "kernel"] = np.stack([each.T for each in own])
    for name, ours in NORMS.items():
        own = [arrays[_in_layer(number, name)] for number in range(depth)]
        found["decoder", place, ours, "layer_norm", "scale"] = np.stack(own)
    return placed(config, found)


def _table(state: StateDict, config: ModelConfig, rows: Sequence[int | None]) -> tuple[np.ndarray, float]:
    """The table here, and the factor of the last norm: with it the table gives Llama's logits, and, times √d, Llama's embedding."""
    theirs = state[EMBEDDING]
    output = state.get(OUTPUT, theirs)
    ratio = np.float32(np.linalg.norm(theirs) / max(float(np.linalg.norm(output)), 1e-30))
    if not np.allclose(output * ratio, theirs, rtol=1e-5, atol=1e-6):
        raise UserError(
            f"{OUTPUT} is another matrix than {EMBEDDING}, but the output projection of causal models here is their embedding; give "
            "a Llama with tie_word_embeddings"
        )
    root = np.float32(np.sqrt(config.d_model))
    table = np.stack([np.zeros(config.d_model, np.float32) if row is None else theirs[row] / root for row in rows])
    return table, float(root / ratio)


def _in_layer(number: int, name: str) -> str:
    return f"model.layers.{number}.{name}.weight"


def _each_head(matrix: np.ndarray, config: ModelConfig) -> np.ndarray:
    """The matrix of keys or values with the rows of a head for each head of the queries."""
    heads = matrix.reshape(-1, config.d_model // config.heads, config.d_model)
    return np.repeat(heads, config.heads // len(heads), axis=0).reshape(config.d_model, config.d_model)


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
