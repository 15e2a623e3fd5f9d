"""What reservoirs cost: operations, bytes of optimiser state and seconds of a training step, beside the same updatable layers alone."""

from __future__ import annotations

from typing import Any

from configs.common import SIZES
from launch.benchmarks.workloads import LENGTH, PAIRS, Training, in_turn, random_batch
from one_layer.layers.settings import BLOCKS
from one_layer.models import ModelConfig
from one_layer.models.flops import update_flops

_VOCABULARY = 500  # small, so that the layers take most of the time


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures updates on 32 pairs of 24+24 tokens, with 4 updatable layers in the encoder and 1 in the decoder; float32, pre-LN.

    Also measures the time to compile encoders of growing depth. Reservoirs are in the encoder, as in arXiv 2012.15045. With the `policy`,
    the step is one without true gradients.
    """
    cases = {"none": _config(size, "LLLL")}
    for kind in BLOCKS:
        for number in (3,) if quick else (1, 2, 3):
            cases[f"{number} {kind}"] = _config(size, f"4L+{number}R", reservoir=kind)
        for backskip in ("identity",) if quick and kind != "ffn" else ("identity", "policy"):
            cases[f"3 {kind}, {backskip}"] = _config(size, "4L+3R", reservoir=kind, backskip=backskip)
    sides = {name: Training(config, random_batch(_VOCABULARY)) for name, config in cases.items()}
    seconds = in_turn(sides, 2 if quick else 7)
    rows = [
        {
            "reservoirs": name,
            "gigaflops": update_flops(config, PAIRS, LENGTH, LENGTH) / 1e9,
            "optimizer_bytes": sides[name].optimizer_bytes,
            "seconds": seconds[name],
            "ratio": seconds[name] / seconds["none"],
        }
        for name, config in cases.items()
    ]
    compiling = [
        {
            "layers": layers,
            "compile_seconds": Training(_config(size, layers), random_batch(_VOCABULARY)).compile_seconds(),
        }
        for layers in ("LLLL", "LLLLLLLL", "LRLR", "LRLRLRLR", "LRLRLRLRLRLRLRLR")[: 1 if quick else None]
    ]
    return {"pairs": PAIRS, "tokens": 2 * PAIRS * LENGTH, "steps": rows, "compiling": compiling}


def _config(size: str, layers: str, **changes: Any) -> ModelConfig:
    d, ffn, heads, _ = SIZES[size]
    model: dict[str, Any] = {"weights": "dense", "norm_position": "pre", "shared_embedding": True, "decoder_layers": 1}
    return ModelConfig(_VOCABULARY, _VOCABULARY, d, ffn, heads, layers, **model, **changes)
