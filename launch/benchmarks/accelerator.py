"""Training steps as on an accelerator: weights, precisions and batch sizes side by side, with memory and operations per second."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax

from launch.benchmarks.workloads import LENGTH, Training, in_turn, model_of, random_batch
from one_layer.models.flops import update_flops

_WEIGHTS = ("dense", "one_layer", "multi_layer")
# Dense bfloat16 products of NVIDIA's data sheets, in 10^12 operations a second.
_PEAKS = {"H100": 989.0, "H200": 989.0, "A100": 312.0}


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures updates of 4,096 and 32,768 target tokens (`quick`: 768), in sentences of 24, in float32 and bfloat16, at keep 0.5.

    `utilisation` is the share of the device's peak in bfloat16, for devices whose peak is known. `peak_bytes` is the most memory of the
    process so far, so it belongs to a row only where it grows.
    """
    rows = []
    for tokens, dtype in product((768,) if quick else (4096, 32768), ("float32", "bfloat16")):
        batch = random_batch(pairs=tokens // LENGTH)
        configs = {weights: model_of(weights, size).replace(dtype=dtype) for weights in _WEIGHTS}
        seconds = in_turn({weights: Training(config, batch) for weights, config in configs.items()}, 2 if quick else 7)
        for weights, config in configs.items():
            operations = update_flops(config, tokens // LENGTH, LENGTH, LENGTH) / seconds[weights]
            rows.append(
                {
                    "weights": weights,
                    "dtype": dtype,
                    "tokens": tokens,
                    "seconds": seconds[weights],
                    "of_dense": seconds[weights] / seconds["dense"],
                    "tokens_per_second": tokens / seconds[weights],
                    "teraflops": operations / 1e12,
                    "utilisation": operations / 1e12 / peak if (peak := _peak()) else None,
                    "peak_bytes": (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
                }
            )
    return {"steps": rows}


def _peak() -> float | None:
    kind = jax.devices()[0].device_kind
    return next((peak for name, peak in _PEAKS.items() if name in kind), None)
