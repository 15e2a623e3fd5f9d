"""The arrays of a translation model by the names of CTranslate2's `TransformerSpec` (OpenNMT/CTranslate2, revision 7 of the specification).

CTranslate2 stores a matrix as [fan_out, fan_in], and the projections that read the same vectors as one matrix: query, key and value in
self-attention, key and value in the attention to the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from jaxtyping import Float32

from one_layer.data.special_tokens import PAD
from one_layer.importers.by_layer import (
    POSITIONS,
    Arrays,
    Path,
    Variables,
    check_blocks,
    exact,
    has_rms,
    layers,
    norm,
    outside,
)
from one_layer.layers.matrix import sinusoids
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

Named = dict[str, Float32[np.ndarray, "..."]]

# The attentions and the projections that are one matrix there, in their order.
_ATTENTIONS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "self_attention": ("self_attention", (("query", "key", "value"), ("output",))),
    "cross_attention": ("attention", (("query",), ("key", "value"), ("output",))),
}


def arrays(config: ModelConfig, variables: Variables) -> Named:
    """All arrays of the model, float32, by name. Masked matrices are W ⊙ M, once for each layer.

    Raises: UserError for a model that CTranslate2 cannot compute.
    """
    check(config)
    applied = exact(config, variables)
    tables = {path[0]: array for path, array in outside(config, applied).items()}
    found: Named = {}
    for side, stack, embeddings in (("source", "encoder", "embeddings_0"), ("target", "decoder", "embeddings")):
        (table,) = (each.name for each in config.network_family.tables(config) if side in each.sides)
        found[f"{stack}/{embeddings}/weight"] = tables[table]
        if not config.modern:
            found[f"{stack}/position_encodings/encodings"] = sinusoids(POSITIONS + PAD + 1, config.d_model)[PAD + 1 :]
        if config.stack(stack).final_norm is not None:
            found |= _norm(config, f"{stack}/layer_norm", outside(config, applied, stack), ("final_norm",))
        for number, layer in enumerate(layers(config, applied, stack)):
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
    check_blocks(config, "ctranslate2")
    has_rms(config)


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


def _linear(name: str, layer: Arrays, modules: list[Path]) -> Iterator[tuple[str, np.ndarray]]:
    """The matrix of some projections, and their bias if they have one."""
    yield f"{name}/weight", np.concatenate([layer[*module, "kernel"].T for module in modules])
    if all((*module, "bias") in layer for module in modules):
        yield f"{name}/bias", np.concatenate([layer[*module, "bias"] for module in modules])


def _norm(config: ModelConfig, name: str, found: Arrays, path: Path) -> Named:
    scale, shift = norm(found, path, config.d_model)
    return {f"{name}/gamma": scale} if has_rms(config) else {f"{name}/gamma": scale, f"{name}/beta": shift}
