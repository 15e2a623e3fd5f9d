"""Populations on several CPU devices, in a process of its own, because a process has one number of devices (JAX_NUM_CPU_DEVICES).

    python -m tests.training.population_program compare DEVICES     a few updates on one device and on so many
    python -m tests.training.population_program train FOLDER UPDATES NAME ...   the runs of test_population, on all devices

The first prints what it found as JSON, the second the runs that failed. UPDATES is after how many updates a signal comes, or 0.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import numpy as np

from one_layer.models.sharding import Devices
from one_layer.training.beginning import opened
from one_layer.training.interruption import Interrupted, Interruption
from one_layer.training.population import Member, train_together
from one_layer.training.stacked import Stack
from tests import tiny

UPDATES = 4
FROZEN = 1  # the place of the member that does only the first update
MEMBERS: list[dict[str, Any]] = [
    {"seed": 1, "model.keep": 0.5},
    {"seed": 2, "model.keep": 0.3},
    {"seed": 3, "optim.lr": 0.02},
    {"seed": 4, "optim.warmup": 2},
    {"seed": 5, "optim.label_smoothing": 0.2},
]
TREES = ("params", "moments", "fixed")


def compare(devices: int) -> dict[str, Any]:
    """What is special on so many devices, and how far the results are from those of one device."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_runs:
        runs = [_opened(Path(folder) / str(each), changes, open_runs) for each, changes in enumerate(MEMBERS)]
        alone, found = _updated(runs, 1), _updated(runs, devices)
    return {
        "collectives": found["collectives"],
        "members": found["members"],
        "apart": {name: _apart(alone[name], found[name]) for name in ("sums", "first", *TREES)},
        "frozen": {name: _apart(found["first"][name], found[name][FROZEN]) for name in TREES},
    }


def _opened(folder: Path, changes: dict[str, Any], open_runs: ExitStack) -> Member:
    member = Member(open_runs.enter_context(opened(tiny.run(changes), folder, Devices.holding(()))), validators=[])
    open_runs.callback(member.checkpoints.close)
    return member


def _updated(runs: list[Member], devices: int) -> dict[str, Any]:
    stack, sums, everybody = Stack(runs, jax.devices()[:devices]), [], list(range(len(runs)))
    requests = {place: (runs[place].batches[0], 0) for place in everybody}
    stack._step = program = stack._step.lower(*stack._arguments(requests)).compile()
    for number in range(UPDATES):
        places = [place for place in everybody if number == 0 or place != FROZEN]
        reports = stack.update({place: (runs[place].batches[number], number) for place in places})
        sums.append([{name: np.asarray(value) for name, value in reports[place].items()} for place in places])
        if number == 0:
            first = {name: jax.device_get(stack.of(name, FROZEN)) for name in TREES}
    leaves = [jax.tree.leaves(stack._trees[name]) for name in TREES]
    return {
        "collectives": collectives(program.as_text()),
        "members": {tuple(len(shard.data) for shard in leaf.addressable_shards) for each in leaves for leaf in each},
        "sums": sums,
        "first": first,
        **{name: [jax.device_get(stack.of(name, place)) for place in everybody] for name in TREES},
    }


def collectives(text: str) -> list[str]:
    """The operations of a compiled program that move anything between devices."""
    return re.findall(r"\b(?:all-[a-z-]+|collective-[a-z-]+|reduce-scatter[a-z-]*|send|recv)\(", text)


def _apart(one: Any, other: Any) -> float:
    """The greatest difference of two trees, relative to the greatest number of each array."""

    def of(left: Any, right: Any) -> float:
        left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
        return float(np.abs(left - right).max() / max(np.abs(left).max(), 1e-30))

    return max(jax.tree.leaves(jax.tree.map(of, one, other)), default=0.0)


def train(folder: Path, updates: int, names: Sequence[str]) -> dict[str, str]:
    """Trains the runs together. Returns: what went wrong, by name."""
    from tests.training.test_population import entries

    interruption = Interruption()
    Stack.update = _interrupting(interruption, updates)  # type: ignore[method-assign]
    try:
        return train_together(entries(folder, *names), interruption)
    except Interrupted as interrupted:
        return {"interrupted": str(interrupted.number)}


def _interrupting(interruption: Interruption, updates: int) -> Callable[..., Any]:
    update, done = Stack.update, []

    def counted(self: Stack, requests: Any) -> Any:
        done.append(len(requests))
        if len(done) == updates:
            interruption.signal = signal.SIGTERM
        return update(self, requests)

    return counted


def main(what: str, *words: str) -> dict[str, Any]:
    if what == "compare":
        return compare(int(words[0]))
    return train(Path(words[0]), int(words[1]), words[2:])


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout, indent=1, default=list)
