"""Writes a translation model as a folder of CTranslate2 (docs/engines.md), with the package of that name, which is optional.

The arrays have the names of its `TransformerSpec` (OpenNMT/CTranslate2, revision 7 of the specification). CTranslate2 stores a matrix as
[fan_out, fan_in], and the projections that read the same vectors as one matrix: query, key and value in self-attention, key and value in
the attention to the source.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.data.text.assets import save_text_assets
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.data.tokens import LONGEST
from one_layer.importers import parameters
from one_layer.importers.parameters import POSITIONS, Arrays, Named, Variables
from one_layer.layers import trees
from one_layer.layers.matrix import sinusoids
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel

PRECISIONS = ("float32", "int8")

# The attentions and the projections that are one matrix there, in their order.
_ATTENTIONS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "self_attention": ("self_attention", (("query", "key", "value"), ("output",))),
    "cross_attention": ("attention", (("query",), ("key", "value"), ("output",))),
}


def import_package(option: str = "--format=ctranslate2") -> Any:
    """The module `ctranslate2.specs`. Raises: UserError with the command that installs it, if it is missing; `option` asks for it."""
    try:
        from ctranslate2 import specs
    except ImportError:
        raise UserError(
            f"{option} needs the package ctranslate2, which is not installed; run .venv/bin/pip install -r requirements-engines.txt"
        ) from None
    return specs


def searching(model: TrainedModel, engine: str) -> TrainedModel:
    """A copy of a translation model for which CTranslate2 searches: `engine` is ctranslate2, or ctranslate2-int8.

    Raises: UserError for another model, one that CTranslate2 cannot compute, and a missing package.
    """
    option = f"--engine={engine}"
    if model.packed:
        raise UserError(f"{option} has all masks applied; leave --ticket_mode=packed out")
    found = model.with_engine(engine, write)
    check(model.config)
    longest = model.settings.longest(LONGEST)  # tokens with eos, of which `cut` leaves no more
    if longest >= POSITIONS and not model.config.modern:
        raise UserError(
            f"{option} has {POSITIONS:,} positions, and a translation may have {longest:,} tokens; give a smaller "
            "evaluation.max_length_a or evaluation.max_length_b"
        )
    import_package(option)
    return found


def write(model: TrainedModel, folder: Path, precision: str) -> None:
    """Writes model.bin, config.json and the vocabularies of CTranslate2 into `folder`, and the files that prepare text.

    With the precision int8, matrices and tables have 8 bits for each number, and a scale for each row. Raises: UserError as `arrays` does.
    """
    specs, config = import_package(), model.config
    found = arrays(config, model.variables)
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(config.depth("encoder"), **_settings(specs, config)),
        specs.transformer_spec.TransformerDecoderSpec(config.depth("decoder"), **_settings(specs, config)),
    )
    for name, array in found.items():
        scope, _, leaf = name.rpartition("/")
        copied = np.array(array, order="C")  # because quantisation changes it
        setattr(specs.model_spec.index_spec(spec, scope), leaf, copied)
    options = spec.config
    options.bos_token, options.eos_token, options.unk_token = (SPECIALS[token] for token in (BOS, EOS, UNK))
    options.decoder_start_token, options.add_source_eos = options.eos_token, True
    options.layer_norm_epsilon = config.norm_epsilon
    spec.register_source_vocabulary(list(model.assets.source_vocabulary.tokens))
    spec.register_target_vocabulary(list(model.assets.target_vocabulary.tokens))
    spec.validate()
    spec.optimize(quantization=precision)
    spec.save(str(folder))
    save_text_assets(model.assets, folder)


def _settings(specs: Any, config: ModelConfig) -> dict[str, Any]:
    """What the specifications of encoder and decoder are made with. Activations in modern blocks are silu, which is SWISH there."""
    kinds = specs.common_spec.Activation
    activations = {"relu": kinds.RELU, "gelu": kinds.GELU, "gelu_tanh": kinds.GELUTanh}
    found: dict[str, Any] = {"num_heads": config.heads, "pre_norm": config.norm_position == "pre"}
    found |= {"activation": activations[config.activation], "rms_norm": parameters.has_rms(config)}
    if config.modern:
        found |= {"activation": kinds.SWISH, "ffn_glu": True, "rotary_interleave": False}
        found |= {"rotary_dim": config.d_model // config.heads, "rotary_base": config.rotary_base}
    return found


def arrays(config: ModelConfig, variables: Variables) -> Named:
    """All arrays of the model, float32, by name. Masked matrices are W ⊙ M, once for each layer.

    Raises: UserError for a model that CTranslate2 cannot compute.
    """
    check(config)
    applied = parameters.exact(config, variables)
    tables = {path[0]: array for path, array in parameters.outside(config, applied).items()}
    found: Named = {}
    for side, stack, embeddings in (("source", "encoder", "embeddings_0"), ("target", "decoder", "embeddings")):
        found[f"{stack}/{embeddings}/weight"] = tables[config.network_family.table_of(config, side).name]
        if not config.modern:
            found[f"{stack}/position_encodings/encodings"] = sinusoids(POSITIONS + PAD + 1, config.d_model)[PAD + 1 :]
        if config.stack(stack).final_norm is not None:
            found |= _norm(config, f"{stack}/layer_norm", parameters.outside(config, applied, stack), ("final_norm",))
        for number, layer in enumerate(parameters.layers(config, applied, stack)):
            parts = _of_layer(config, layer, config.network_family.attentions(stack))
            found |= {f"{stack}/layer_{number}/{name}": array for name, array in parts}
    return found | {"decoder/projection/weight": found["decoder/embeddings/weight"]}


def check(config: ModelConfig) -> None:
    """Raises: UserError for a model that CTranslate2 cannot compute, or that is of another family."""
    if config.family != "translation":
        raise UserError(
            f"this model is a {config.network_family.describe(config)}, but --format=ctranslate2 is for translation models; give "
            "--format=huggingface"
        )
    parameters.check_blocks(config, "ctranslate2")
    parameters.has_rms(config)


def _of_layer(config: ModelConfig, layer: Arrays, attentions: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    for attention in attentions:
        theirs, fused = _ATTENTIONS[attention]
        for place, names in enumerate(fused):
            yield from _linear(f"{theirs}/linear_{place}", layer, [(attention, name) for name in names])
        yield from _norm(config, f"{theirs}/layer_norm", layer, (f"{attention}_norm",)).items()
    first = {"linear_0": "ffn_gate", "linear_0_noact": "ffn_in"} if config.modern else {"linear_0": "ffn_in"}
    for theirs, ours in chain(first.items(), [("linear_1", "ffn_out")]):
        yield from _linear(f"ffn/{theirs}", layer, [(ours,)])
    yield from _norm(config, "ffn/layer_norm", layer, ("ffn_norm",)).items()


def _linear(name: str, layer: Arrays, modules: list[trees.Path]) -> Iterator[tuple[str, np.ndarray]]:
    """The matrix of some projections, and their bias if they have one."""
    yield f"{name}/weight", np.concatenate([layer[*module, "kernel"].T for module in modules])
    if all((*module, "bias") in layer for module in modules):
        yield f"{name}/bias", np.concatenate([layer[*module, "bias"] for module in modules])


def _norm(config: ModelConfig, name: str, found: Arrays, path: trees.Path) -> Named:
    scale, shift = parameters.norm(found, path, config.d_model)
    return {f"{name}/gamma": scale} if parameters.has_rms(config) else {f"{name}/gamma": scale, f"{name}/beta": shift}
