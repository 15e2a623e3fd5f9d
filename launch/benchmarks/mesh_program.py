"""Measures a training step on one mesh of CPU devices; a process of its own, because a process has one number of devices.

    JAX_NUM_CPU_DEVICES=8 python -m launch.benchmarks.mesh_program '{"weights": "one_layer", "size": "wider", "data": 8, "model": 1, ...}'

Prints JSON: the bytes of a device (state, batch and weights before the step, and what the step needs beside them), the bytes that travel
in an update, and with `rounds` above 0 the seconds of an update.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp

from launch.benchmarks.workloads import IWSLT14_VOCABULARIES, WMT14_SIZES, WMT14_VOCABULARIES, model_of, random_batch
from one_layer.ahead.contents import contents
from one_layer.models import abstract, initialize
from one_layer.models.sharding import Devices
from one_layer.system.heap import keep_freed_memory
from one_layer.tasks import TASKS
from one_layer.training.optimizer import OptimConfig, optimizer
from one_layer.training.step import train_step


def measure(weights: str, size: str, data: int, model: int, pairs: int, rounds: int) -> dict[str, Any]:
    """Compiles the step for `pairs` pairs of 24+24 tokens on `data` x `model` devices; then runs it `rounds` times."""
    config = model_of(weights, size, WMT14_VOCABULARIES if size in WMT14_SIZES else IWSLT14_VOCABULARIES)
    devices = Devices.arranged(data, model)
    adam = optimizer(OptimConfig(), 100)
    step = train_step(TASKS["translation"], config, adam, 0.1, 0, devices=devices)
    batch = devices.batch(random_batch(min(config.source_vocab, config.target_vocab), pairs))
    fixed = abstract(config)
    params = fixed.pop("params")
    given = (params, jax.eval_shape(adam.init, params), fixed)
    number = jax.ShapeDtypeStruct((), jnp.int32)
    program = step.lower(*given, batch, number).compile()  # type: ignore[attr-defined]
    memory = program.memory_analysis()
    found: dict[str, Any] = {
        "before_bytes": memory.argument_size_in_bytes,
        "beside_bytes": memory.temp_size_in_bytes,
        **{f"{kind}_bytes": moved for kind, moved in contents(program.as_text()).moved.items()},
    }
    if rounds:
        fixed = initialize(config, 0, devices)
        params = fixed.pop("params")
        moments, times = devices.initial_moments(adam.init, params), []
        for update in range(rounds + 1):
            start = time.perf_counter()
            params, moments, sums = step(params, moments, fixed, batch, update)
            jax.block_until_ready(sums)
            times.append(time.perf_counter() - start)
        found["seconds"] = sorted(times[1:])[rounds // 2]
    return found


if __name__ == "__main__":
    keep_freed_memory()  # as training does
    json.dump(measure(**json.loads(sys.argv[1])), sys.stdout)
