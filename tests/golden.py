"""Reads the golden arrays, computed with the paper's own code, as this project's variables and configs."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from one_layer.models import ModelConfig, initialize

_NAMES = {
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output",
    "fc1": "ffn_in",
    "fc2": "ffn_out",
}
_NORMS = {"final": "ffn", "self_attn": "self_attention", "encoder_attn": "cross_attention"}


def model_config(masked: bool) -> ModelConfig:
    """The tiny model of golden/README.md."""
    return ModelConfig(
        source_vocab=23,
        target_vocab=19,
        d_model=16,
        ffn=32,
        heads=2,
        encoder_layers=3,
        decoder_layers=3,
        weights="one_layer" if masked else "dense",
        keep=0.5,
    )


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of one file."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def find(arrays: dict[str, np.ndarray], path: tuple[str, ...], prefix: str = "") -> np.ndarray:
    """The golden array of the variable at `path`, layers stacked, in this project's orientation [fan_in, fan_out]."""
    stack, leaf = path[0], path[-1]
    if stack.endswith("embedding"):
        side = "encoder" if stack == "source_embedding" else "decoder"
        return arrays[f"{prefix}{side}/embed_tokens/{'scores' if leaf == 'scores' else 'weight'}"]
    if path[-2] == "layer_norm":
        block = path[2].removesuffix("_norm")
        name = next(theirs for theirs, ours in _NORMS.items() if ours == block) + "_layer_norm"
        kind = "weight" if leaf == "scale" else "bias"
    else:
        back = {ours: theirs for theirs, ours in _NAMES.items()}
        name = "/".join(back[part] for part in path[2:-1])
        kind = {"kernel": "weight"}.get(leaf, leaf)
    shared = f"{prefix}{stack}/{name}/{kind}"
    if shared in arrays:
        return arrays[shared].T
    layers = [arrays[f"{prefix}{stack}/layer_{layer}/{name}/{kind}"] for layer in range(3)]
    return np.stack([layer.T for layer in layers])


def variables(arrays: dict[str, np.ndarray], config: ModelConfig) -> dict[str, Any]:
    """Every variable of the model, filled from the golden arrays."""
    ours = flatten_dict(initialize(config, 0))
    return unflatten_dict({path: jnp.asarray(find(arrays, path[1:])) for path in ours})
