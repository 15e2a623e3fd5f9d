"""Training steps as on an accelerator: weights, precisions and batch sizes side by side, with memory and operations per second."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import jax

from launch.benchmarks.peers import Peer, task_of, torch_command
from launch.benchmarks.workloads import LENGTH, Training, in_turn, model_of, random_batch
from one_layer.models.flops import update_flops

_WEIGHTS = ("dense", "one_layer", "multi_layer")
_PEER_SIDES = {"dense": "dense", "masked": "masks by sorting", "kthvalue": "masks by kthvalue"}
_WORKLOADS = (  # target tokens of an update, precision, dropout
    (32_768, "bfloat16", 0.0),
    (32_768, "bfloat16", 0.3),
    (4096, "bfloat16", 0.0),
    (4096, "float32", 0.0),
)
_QUICK = ((768, "bfloat16", 0.0), (768, "float32", 0.3))
# Dense bfloat16 products of NVIDIA's data sheets, in 10^12 operations a second.
_PEAKS = {"H100": 989.0, "H200": 989.0, "A100": 312.0}


def measure(size: str, quick: bool, peer: str = "") -> dict[str, Any]:
    """Measures updates of the workloads above, in sentences of 24 tokens, at keep 0.5: in rows of ten updates (`quick`: one).

    With `peer` torch, PyTorch makes the same updates, compiled, in turn with ours. `of_dense` and `of_peer` are the seconds as shares of
    those of our dense update and of the peer's. `utilisation` is the share of the device's peak in bfloat16, for devices whose peak is
    known. `peak_bytes` is the most memory of this process so far, so it belongs to a row only where it grows.
    """
    rows, about = [], {}
    updates = 1 if quick else 10
    peak = next((peak for name, peak in _PEAKS.items() if name in jax.devices()[0].device_kind), None)
    for tokens, dtype, dropout in _QUICK if quick else _WORKLOADS:
        batch = random_batch(pairs=tokens // LENGTH)
        configs = {weights: model_of(weights, size).replace(dtype=dtype, dropout=dropout) for weights in _WEIGHTS}
        sides: dict[str, Callable[[], Any]] = {
            weights: partial(Training(config, batch), updates) for weights, config in configs.items()
        }
        with ExitStack() as ending:
            if peer:
                task = task_of(size, batch, dropout=dropout, dtype=dtype, compiled=True)
                torch = ending.enter_context(Peer(torch_command(), task))
                about[peer] = torch.about
                sides |= {f"{peer}: {what}": partial(torch, (side, updates)) for side, what in _PEER_SIDES.items()}
            took = {name: seconds / updates for name, seconds in in_turn(sides, 2 if quick else 7).items()}
        for side, seconds in took.items():
            work = update_flops(configs[side], tokens // LENGTH, LENGTH, LENGTH) / seconds if side in configs else None
            rows.append(
                {
                    "side": side,
                    "dtype": dtype,
                    "tokens": tokens,
                    "dropout": dropout,
                    "seconds": seconds,
                    "of_dense": seconds / took["dense"],
                    "of_peer": seconds / took[f"{peer}: dense"] if peer else None,
                    "tokens_per_second": tokens / seconds,
                    "teraflops": work / 1e12 if work else None,
                    "utilisation": work / 1e12 / peak if work and peak else None,
                    "peak_bytes": (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
                }
            )
    return {"steps": rows} | ({"peers": about} if peer else {})
