"""Writes a translation model as a folder of CTranslate2 (docs/engines.md), with the package of that name, which is optional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.special_tokens import BOS, EOS, UNK
from one_layer.data.text.assets import save_text_assets
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.data.tokens import LONGEST
from one_layer.importers.by_layer import POSITIONS, has_rms
from one_layer.importers.ctranslate2_weights import arrays, check
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel

PRECISIONS = ("float32", "int8")


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
    check(model.config)
    specs, config = import_package(), model.config
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(config.depth("encoder"), **_settings(specs, config)),
        specs.transformer_spec.TransformerDecoderSpec(config.depth("decoder"), **_settings(specs, config)),
    )
    for name, array in arrays(config, model.variables).items():
        scope, _, leaf = name.rpartition("/")
        setattr(
            specs.model_spec.index_spec(spec, scope), leaf, np.array(array, order="C")
        )  # a copy, which quantisation changes
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
    activations = specs.common_spec.Activation
    activation = {"relu": activations.RELU, "gelu": activations.GELU, "gelu_tanh": activations.GELUTanh}[
        config.activation
    ]
    rotary = {
        "rotary_dim": config.d_model // config.heads,
        "rotary_interleave": False,
        "rotary_base": config.rotary_base,
    }
    return {
        "num_heads": config.heads,
        "pre_norm": config.norm_position == "pre",
        "activation": activations.SWISH if config.modern else activation,
        "rms_norm": has_rms(config),
        **({"ffn_glu": True, **rotary} if config.modern else {}),
    }
