"""What fairseq's checkpoints of small models have: parameters in which all values differ, and training options."""

import numpy as np

from one_layer.importers.fairseq import entries

OPTIONS = {
    **{"task": "translation", "source_lang": "de", "target_lang": "en", "encoder_normalize_before": False},
    **{"encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_fn": "relu"},
    **{"dropout": 0.3, "attention_dropout": 0.0, "activation_dropout": 0.0},
}
MASKED = {**OPTIONS, "share_mask": "layer_weights", "prune_method": "super_mask", "prune_ratio": 0.5}


def state_of(config, seed=0):
    """The state dict of a model; copies are one array, as they are one tensor in fairseq."""
    random = np.random.default_rng(seed)
    parameters, copies = entries(config)
    state = {each.name: random.standard_normal(each.shape).astype(np.float32) for each in parameters}
    state |= {copy: state[first] for copy, first in copies.items()}
    if config.keep == 1:  # nothing is masked, but there are scores
        masked = [name for name, array in state.items() if array.ndim > 1 and ("fc" in name or "_proj." in name)]
        masked += [f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")] * (config.embedding == "masked")
        state |= {f"{name.removesuffix('weight')}scores": np.ones_like(state[name]) for name in masked}
    for stack in ("encoder", "decoder"):
        state |= {f"{stack}.version": np.array([3.0]), f"{stack}.embed_positions._float_tensor": np.zeros(1)}
    return state
