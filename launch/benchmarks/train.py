"""Compares a masked training step with a dense one, and measures the memory of the masked step."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from launch.benchmarks.peers import Peer, task_of, torch_command
from launch.benchmarks.workloads import LENGTH, PAIRS, Training, in_turn, model_of, random_batch
from one_layer.system.errors import UserError
from one_layer.training.results import peak_memory_bytes


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds of one update on 32 pairs of 24+24 tokens: one-layer masked at keep 0.5, and dense; float32, no dropout.

    `peers` says what the peers are that ran the same steps; each has a process of its own.
    """
    batch = random_batch()
    masked = Training(model_of("one_layer", size), batch)
    masked()
    peak = peak_memory_bytes()  # before the dense model allocates memory
    sides: dict[str, Callable[[], Any]] = {
        "masked_seconds": masked,
        "dense_seconds": Training(model_of("dense", size), batch),
    }
    task = task_of(size, batch)
    with ExitStack() as ending:
        peers = {name: ending.enter_context(Peer(command, task)) for name, command in peer_commands().items()}
        for name, peer in peers.items():
            sides |= {f"{name}_{side}_seconds": partial(peer, side) for side in ("masked", "dense")}
        seconds = in_turn(sides, 2 if quick else 7)
    return {
        "pairs": PAIRS,
        "tokens": 2 * PAIRS * LENGTH,
        **seconds,
        "ratio": seconds["masked_seconds"] / seconds["dense_seconds"],
        "peak_bytes": peak,
        "peers": {name: peer.about for name, peer in peers.items()},
    }


def peer_commands() -> dict[str, list[str]]:
    """The commands of the peers that are there: PyTorch's, with masks by sorting."""
    try:
        return {"torch": torch_command()}
    except UserError:
        return {}
