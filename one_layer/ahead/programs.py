"""Compiles a run's training step for devices that are only described."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from one_layer.ahead.chips import Target
from one_layer.models import ModelConfig
from one_layer.models.sharding import DATA, Devices
from one_layer.platform import compiling_for
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.training.backskipping import with_policy
from one_layer.training.optimizer import optimizer
from one_layer.training.plan import SHORT, keeps_loops
from one_layer.training.step import state_shapes, train_step

# Without a device, XLA cannot try the tiles of Triton's products, and takes some that have no meaning.
_OF_A_GPU = {"xla_gpu_enable_triton_gemm": False}


@dataclass(frozen=True)
class Compiled:
    """A program as the compiler left it. Bytes are those of one device.

    `arguments`: what lies there before and after, such as the state of training; `temporary`: what the program needs besides; `peak`: the
    most that is in use at a time. `rows` are those of a micro-batch on all devices.
    """

    text: str
    arguments: int
    temporary: int
    peak: int
    seconds: float
    rows: int


def compiled(run: RunConfig, config: ModelConfig, target: Target, length: int, mesh: tuple[int, int]) -> Compiled:
    """The update of a run on all devices of the target, data x model of them, for sequences of `length` positions.

    Raises: UserError for a mesh that does not fit, and for a program too large for the target's memory.
    """
    devices = Devices.arranged(*mesh, target.devices())
    devices.check(config)
    parts = devices.mesh.shape[DATA]
    rows = max(1, run.data.max_tokens // run.optim.accumulate // length // parts) * parts
    begun = time.perf_counter()
    with compiling_for(target.chip.platform):
        lowered = _step(run, config, devices, rows, length)
        options = _OF_A_GPU if target.chip.platform == "cuda" else None
        try:
            program = lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            used = re.search(r"Used ([\d.]+\w) of ([\d.]+\w)", str(error))
            by = f" ({used[1]} of {used[2]})" if used else ""
            raise UserError(
                f"the program needs more memory than a device of {target.name} has{by}; lower data.max_tokens, raise optim.accumulate or "
                "mesh.model, set model.remat, or give more devices"
            ) from None
    memory = program.memory_analysis()
    return Compiled(
        text=program.as_text(),
        arguments=memory.argument_size_in_bytes,
        temporary=memory.temp_size_in_bytes,
        peak=memory.peak_memory_in_bytes,
        seconds=time.perf_counter() - begun,
        rows=rows,
    )


def _step(run: RunConfig, config: ModelConfig, devices: Devices, rows: int, length: int) -> Any:
    adam = with_policy(optimizer(run.optim), config, run.seed)
    params, moments, fixed = state_shapes(config, adam, devices)
    smoothing, softness = run.optim.label_smoothing, run.optim.softness
    loops = keeps_loops(run.train, run.train.updates or SHORT)
    step = train_step(run.task, config, adam, smoothing, run.seed, devices, loops=loops, softness=softness)
    by_rows = NamedSharding(devices.mesh, P(None, DATA))
    batch = {
        each: jax.ShapeDtypeStruct((run.optim.accumulate, rows, positions), jnp.int32, sharding=by_rows)
        for each, positions in run.task.arrays(run.data, length).items()
    }
    everywhere = NamedSharding(devices.mesh, P())
    number = jax.ShapeDtypeStruct((), jnp.int32, sharding=everywhere)
    pace = jax.ShapeDtypeStruct((5,), jnp.float32, sharding=everywhere)
    stored, computing = devices.stored_tree, devices.computing_tree
    given = (_placed(params, stored), _placed(moments, stored), _placed(fixed, computing), batch, number, pace)
    return step.lower(*given)  # type: ignore[attr-defined]


def _placed(tree: Any, place: Callable[[Any], Any]) -> Any:
    """Shapes with the places of their arrays, as `place` says for the whole tree."""
    return jax.tree.map(
        lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where), tree, place(tree)
    )
