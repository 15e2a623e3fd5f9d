"""The parameters of a translation model by the names of Hugging Face's ports of fairseq's Transformer.

`FSMTForConditionalGeneration` is the post-LN Transformer with a table for each language, and `M2M100ForConditionalGeneration` the
pre-LN one with one table. Both have LayerNorm, biases, and sinusoids that are counted as here. No class of transformers has pre-LN layers
and two tables, or RMSNorm and rotary positions with an encoder (T5Gemma has norms on both sides of a block).
"""

from typing import Any

import numpy as np

from one_layer.data.special_tokens import BOS, EOS, PAD
from one_layer.importers import parameters
from one_layer.importers.config_json import ACTIVATIONS
from one_layer.importers.fairseq import MODULES
from one_layer.importers.parameters import POSITIONS, Named, Variables
from one_layer.layers.matrix import sinusoids
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError


def export(config: ModelConfig, variables: Variables) -> Named:
    """The float32 state dict of the class that `class_of` names. Masked matrices are W ⊙ M, once for each layer; absent biases are 0.

    Raises: UserError for a model that neither class computes.
    """
    kind, applied = class_of(config), parameters.exact(config, variables)
    state: Named = {}
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(parameters.layers(config, applied, stack)):
            modules = dict.fromkeys(path[:-1] for path in layer if path[-1] == "kernel")
            for path in modules:
                name = f"model.{stack}.layers.{number}.{'.'.join(MODULES[each] for each in path)}"
                kernel = layer[*path, "kernel"]
                state[f"{name}.weight"] = kernel.T
                state[f"{name}.bias"] = layer.get((*path, "bias"), np.zeros(kernel.shape[1], np.float32))
            for path in {(f"{path[0]}_norm",) for path in modules if len(path) > 1} | {("ffn_norm",)}:
                name = f"model.{stack}.layers.{number}.{MODULES[path[0]]}"
                state[f"{name}.weight"], state[f"{name}.bias"] = parameters.norm(layer, path, config.d_model)
        if config.stack(stack).final_norm is not None:
            final = parameters.norm(parameters.outside(config, applied, stack), ("final_norm",), config.d_model)
            state[f"model.{stack}.layer_norm.weight"], state[f"model.{stack}.layer_norm.bias"] = final
    state |= _tables(config, {path[0]: array for path, array in parameters.outside(config, applied).items()}, kind)
    return {name: np.array(array, np.float32, order="C") for name, array in state.items()}


def _tables(config: ModelConfig, tables: dict[str, Any], kind: str) -> Named:
    if kind.startswith("M2M100"):
        return {"model.shared.weight": tables["shared_embedding"]}
    source, target = (tables[config.network_family.table_of(config, side).name] for side in ("source", "target"))
    rows = sinusoids(POSITIONS + PAD + 1, config.d_model)
    rows[PAD] = 0.0
    return {
        "model.encoder.embed_tokens.weight": source,
        "model.decoder.embed_tokens.weight": target,
        "model.decoder.output_projection.weight": target,
        "model.encoder.embed_positions.weight": rows,
        "model.decoder.embed_positions.weight": rows,
    }


def options(config: ModelConfig, languages: tuple[str, str]) -> dict[str, Any]:
    """The content of config.json."""
    kind = class_of(config)
    found: dict[str, Any] = {
        "architectures": [kind],
        "model_type": "m2m_100" if kind.startswith("M2M100") else "fsmt",
        "d_model": config.d_model,
        "activation_function": ACTIVATIONS[config.activation],
        "max_position_embeddings": POSITIONS,
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "bos_token_id": BOS,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": EOS,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
    }
    for stack in ("encoder", "decoder"):
        found |= {f"{stack}_layers": config.depth(stack), f"{stack}_ffn_dim": config.ffn, f"{stack}_layerdrop": 0.0}
        found[f"{stack}_attention_heads"] = config.heads
    if kind.startswith("M2M100"):
        return found | {"vocab_size": config.target_vocab, "tie_word_embeddings": True}
    sizes = {"src_vocab_size": config.source_vocab, "tgt_vocab_size": config.target_vocab}
    return found | sizes | {"langs": list(languages), "tie_word_embeddings": False}


def class_of(config: ModelConfig) -> str:
    """The name of the class. Raises: UserError for a model that no class of transformers computes."""
    parameters.check_blocks(config, "huggingface")
    parameters.check_fields(config, {"norm_epsilon": (1e-5,)}, "a translation model of transformers")
    if config.modern or parameters.has_rms(config):
        raise UserError(
            f"model.block is {config.block} and model.norm {config.norm}, but no translation model of transformers has such layers; give "
            "--format=ctranslate2"
        )
    if config.norm_position == "post":
        return "FSMTForConditionalGeneration"
    if not config.shared_embedding:
        raise UserError(
            "this is a pre-LN model with two tables, but the pre-LN translation models of transformers have one for both languages; give "
            "--format=ctranslate2, or export a model with model.shared_embedding=True"
        )
    return "M2M100ForConditionalGeneration"
