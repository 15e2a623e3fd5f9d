"""The kernel for packed masks, in Pallas' interpreter: it multiplies as the other ways do, and compiles for GPUs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams  # it has no public name yet

from launch.benchmarks import kernel

pytestmark = pytest.mark.slow  # the interpreter takes seconds


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(64, 128, 512), (512, 64, 1024)])
def test_all_ways_give_the_same_products(rows, inputs, outputs):
    found = {
        name: np.asarray(side()) for name, side in kernel.sides(rows, inputs, outputs, 2, InterpretGPUParams()).items()
    }
    assert list(found) == ["materialized", "xla", "kernel", "signs"]
    assert found["xla"].shape == (2, rows, outputs) and np.std(found["xla"]) > 1
    for each in found.values():
        np.testing.assert_allclose(each, found["materialized"], atol=1e-4)


def test_weights_of_any_size_are_multiplied_by_their_own_bits():
    """Every weight is another, so a bit at a wrong place would show."""
    random = np.random.default_rng(0)
    x, weights = (jnp.asarray(random.standard_normal(shape), jnp.bfloat16) for shape in ((64, 64), (1024, 64)))
    kept = random.random((1024, 64)) < 0.3
    found = kernel.product(x, weights, kernel.planes(jnp.asarray(kept)), InterpretGPUParams())
    expected = np.asarray(x, np.float64) @ (np.asarray(weights, np.float64) * kept).T
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("rows", [64, 192, 512])
@pytest.mark.parametrize("signs", [False, True])
def test_the_kernel_is_lowered_for_gpus(rows, signs):
    """Without a GPU, this checks the layouts and the shared memory, and not the machine's code."""
    x, mask = jnp.zeros((rows, 512), jnp.bfloat16), jnp.zeros((128, 512), jnp.uint8)
    weights = mask if signs else jnp.zeros((1024, 512), jnp.bfloat16)
    lowered = jax.jit(kernel.product).trace(x, weights, mask).lower(lowering_platforms=("cuda",))
    assert "mosaic_gpu" in lowered.as_text()
