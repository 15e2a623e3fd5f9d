"""The activation relu: the numbers of jax.nn.relu, and NaN is passed on where a GPU would make it 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.settings import ACTIVATIONS
from tests.compiling import jit

# Every number of bfloat16, and every 65521st of float32 (a prime), with zeros of both signs, subnormal numbers and infinities.
PATTERNS = {
    "bfloat16": np.arange(2**16, dtype=np.uint16).view(jnp.bfloat16),
    "float32": np.append(np.arange(0, 2**32, 65521), [1, 2**31, 2**31 + 1, 0x7F800000, 0xFF800000, 0x7FC00000])
    .astype(np.uint32)
    .view(np.float32),
}


def with_gradient(function, x):
    """The bits of the values, and the gradient of their sum where each has a weight of its own."""
    weights = jnp.linspace(-1, 1, len(x))
    values, pull_back = jax.vjp(function, x)
    return jax.lax.bitcast_convert_type(values, f"uint{8 * x.itemsize}"), *pull_back(weights.astype(x.dtype))


@pytest.mark.parametrize("dtype", PATTERNS)
def test_relu_is_that_of_jax_to_the_bit_but_for_nan(dtype):
    x = PATTERNS[dtype][~np.isnan(PATTERNS[dtype].astype(np.float32))]
    found, expected = (jit(with_gradient, static_argnums=0)(each, x) for each in (ACTIVATIONS["relu"], jax.nn.relu))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert found[1].dtype == dtype and np.any(found[1] != 0)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", PATTERNS)
def test_an_activation_passes_nan_on(name, dtype):
    """Of a product, which a GPU may compute together with the activation."""
    x, y = jnp.ones((16, 32), dtype).at[3, 4].set(jnp.nan), jnp.ones((32, 8), dtype)
    found = jit(lambda x, y: ACTIVATIONS[name](x @ y))(x, y).astype(jnp.float32)
    np.testing.assert_array_equal(np.isnan(found), np.arange(16)[:, None] == np.full(8, 3))


def test_relu_is_no_maximum():
    """XLA would have cuBLAS compute it with the product on GPUs, which gives 0 for NaN. The numbers of a CPU do not show this."""
    program = jax.jit(lambda x, y: ACTIVATIONS["relu"](x @ y)).lower(jnp.ones((3, 4)), jnp.ones((4, 5))).as_text()
    assert "stablehlo.compare" in program and "maximum" not in program
