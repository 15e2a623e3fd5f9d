"""A program of many runs, compiled for a GPU that is not here: what `--vmap` gains there. It needs requirements-ahead.txt: `make ahead`."""

import importlib.util
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import SingleDeviceSharding

from configs import toy
from one_layer.ahead.chips import Target
from one_layer.ahead.contents import Contents, contents
from one_layer.ahead.prediction import predict
from one_layer.models.flops import update_flops
from one_layer.models.sharding import Devices
from one_layer.platform import compiling_for
from one_layer.runs.settings import resolve
from one_layer.training.optimizer import optimizer
from one_layer.training.stacked import _step
from one_layer.training.step import state_shapes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ahead,
    pytest.mark.skipif(not importlib.util.find_spec("jax_cuda12_plugin"), reason="needs requirements-ahead.txt"),
]

GPU, UPDATES, VOCABULARY, LENGTH = Target.of("h100"), 100, 64, 16
CONFIG = toy.get_config("one_layer")
CONFIG.model.dtype, CONFIG.train.unroll = "bfloat16", "yes"
RUN = resolve(CONFIG.to_dict())
MODEL = RUN.model_config(VOCABULARY, VOCABULARY)
ROWS = RUN.data.max_tokens // LENGTH


def population(members: int) -> Contents:
    """What the update of so many runs has that differ in their seed and in keep."""
    place = SingleDeviceSharding(GPU.devices()[0])

    def each(shape: tuple[int, ...], dtype: object) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((members, *shape), dtype, sharding=place)

    run = replace(RUN, optim=replace(RUN.optim, lr=1e-3, warmup=0))
    with compiling_for("cuda"):
        trees = state_shapes(MODEL, optimizer(run.optim), Devices.holding(()))
        trees = jax.tree.map(lambda leaf: each(leaf.shape, leaf.dtype), trees)
        numbers = {"seed": each((), jnp.uint32), "model.keep": each((), jnp.float32)}
        arrays = RUN.task.arrays(RUN.data, LENGTH).items()
        batch = {name: each((1, ROWS, positions), jnp.int32) for name, positions in arrays}
        step = jax.jit(jax.vmap(_step(run, MODEL, UPDATES)))
        paces = each((5,), jnp.float32)
        lowered = step.lower(numbers, each((), bool), *trees, batch, each((), jnp.int32), paces)
        return contents(lowered.compile(compiler_options={"xla_gpu_enable_triton_gemm": False}).as_text())


def test_nine_runs_of_the_toy_have_six_times_the_updates_of_one_a_second(monkeypatch):
    """That is the prediction. A small update on a GPU is a row of short kernels, and nine runs start no more of them than one."""
    monkeypatch.setattr(Devices, "platform", "cuda")
    alone, nine = population(1), population(9)
    operations = update_flops(MODEL, ROWS, LENGTH, LENGTH)
    assert nine.kernels <= alone.kernels
    assert predict(nine, 9 * operations, GPU).update < 9 / 6 * predict(alone, operations, GPU).update
