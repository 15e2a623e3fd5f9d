"""Adam's means in fewer bytes: what they keep of the means in float32, and that a checkpoint brings back every bit."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.runs.checkpoints import Checkpoints
from one_layer.runs.settings import MOMENTS, OptimConfig
from one_layer.training.memory import estimate
from one_layer.training.moments import Factors, averaged, initial, root, rounded
from one_layer.training.optimizer import optimizer
from tests import tiny

CONFIG = OptimConfig(lr=0.1, warmup=0)
PARAMS = {"layer": {"scores": jnp.ones((3, 4, 8)), "scale": jnp.ones((3, 8))}, "table": {"scores": jnp.ones((6, 4))}}


def steps(kind, gradients, params=PARAMS):
    """The changes that these gradients make, and the state after them."""
    adam = optimizer(replace(CONFIG, moments=kind), 10)
    update, state, found = jax.jit(adam.update), adam.init(params), []
    for gradient in gradients:
        changes, state = update(gradient, state, params)
        found.append(changes)
    return found, state


def drawn(seed, like=PARAMS):
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(random.standard_normal(leaf.shape), jnp.float32), like)


def assert_close(found, expected, **tolerance):
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, **tolerance), found, expected)


@pytest.mark.parametrize(("kind", "of_a_weight"), [("float32", 8), ("bfloat16", 4), ("factored", 2)])
def test_a_large_matrix_takes_these_bytes_of_a_weight(kind, of_a_weight):
    """The estimate of a run's memory counts them."""
    shape = {"scores": jax.ShapeDtypeStruct((6, 512, 512), jnp.float32)}
    state = jax.tree.leaves(jax.eval_shape(lambda params: initial(kind, params), shape))
    held = sum(leaf.size * leaf.dtype.itemsize for leaf in state) / (6 * 512 * 512)
    assert held == pytest.approx(of_a_weight, rel=0.01)
    run, whole = (tiny.run({"optim.moments": each}) for each in (kind, "float32"))
    model = run.model_config(40, 50)
    counted = [estimate(each, model)["state"] for each in (run, whole)]
    optimised = (estimate(whole, model)["gradients"] // 4) / 3  # all parameters are scores: W ⊙ M and two gradients
    assert counted[1] - counted[0] == pytest.approx((8 - of_a_weight) * optimised, abs=4)


def test_steps_of_bfloat16_are_those_of_float32_but_for_rounding():
    gradients = [drawn(seed) for seed in range(4)]
    exact, near = (steps(kind, gradients)[0] for kind in ("float32", "bfloat16"))
    assert_close(near[0], exact[0], rtol=1e-6)  # nothing was stored before
    assert_close(near, exact, rtol=0.02, atol=1e-3)


def test_steps_are_those_of_float32_where_squares_are_a_product_of_rows_and_columns():
    """Vectors of all layers lie in one array, and are no matrix."""
    random = np.random.default_rng(0)
    shape = PARAMS["layer"]["scores"].shape
    sizes = random.uniform(0.1, 3, (*shape[:-1], 1)) * random.uniform(0.1, 3, (shape[0], 1, shape[2]))
    signs = drawn(1)
    gradient = {
        "layer": {"scores": jnp.sign(signs["layer"]["scores"]) * sizes, "scale": signs["layer"]["scale"]},
        "table": {"scores": jnp.sign(signs["table"]["scores"])},
    }
    exact, near = (steps(kind, [gradient] * 3)[0] for kind in ("float32", "factored"))
    assert_close(near, exact, rtol=0.01)


def test_factors_have_the_means_of_rows_and_columns():
    gradient = drawn(2)["layer"]["scores"]
    found = averaged(0.0, initial("factored", {"scores": gradient})[1]["scores"], gradient)
    assert isinstance(found, Factors)
    for axis in (-1, -2):
        np.testing.assert_allclose(jnp.square(root(found)).mean(axis), jnp.square(gradient).mean(axis), rtol=1e-5)


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_gradient_of_zeros_changes_nothing(kind):
    """Also in one row alone, and where the squares are the least that float32 has."""
    gradient = jax.tree.map(lambda leaf: leaf.at[..., 0, :].set(0.0) * 1e-18, drawn(3))
    (changes, *_), _ = steps(kind, [gradient])
    assert not changes["layer"]["scores"][..., 0, :].any() and np.isfinite(changes["layer"]["scores"]).all()


def averages(squares, decay, updates):
    """The means of these squares, which stay the same, after so many updates from 0."""

    def one(square, number):
        return rounded(averaged(decay, square, jnp.sqrt(squares)), number), None

    return jax.lax.scan(one, jnp.zeros(squares.shape, jnp.bfloat16), jnp.arange(updates))[0].astype(jnp.float32)


def test_rounding_at_random_keeps_a_mean_whose_changes_are_too_small_for_bfloat16():
    """With a decay of 0.999; rounded to the nearest it would stop at a quarter."""
    squares = jnp.exp(jnp.asarray(np.random.default_rng(0).standard_normal(400), jnp.float32))
    found = averages(squares, 0.999, 2000)
    assert float((found / squares).mean()) == pytest.approx(1 - 0.999**2000, rel=0.005)
    assert float((found / squares).std()) < 0.1


def test_rounding_at_random_forgets_what_is_no_longer_there():
    """A mean decays as in float32 where the gradient is 0, though all values that are equal are rounded alike."""
    values = jnp.asarray(np.geomspace(1e-12, 1e3, 200), jnp.bfloat16)
    zeros = jnp.zeros(values.shape)

    def one(square, number):
        return rounded(averaged(0.999, square, zeros), number), None

    found = jax.lax.scan(one, values, jnp.arange(2000))[0].astype(jnp.float32) / values.astype(jnp.float32)
    assert float(found.mean()) == pytest.approx(0.999**2000, rel=0.05)


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_checkpoint_brings_back_every_bit(kind, tmp_path):
    _, state = steps(kind, [drawn(seed) for seed in range(2)])
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(2, PARAMS, state, {"step": 2})
    checkpoints.wait()
    found = checkpoints.restore(2, params=PARAMS, optimizer=jax.tree.map(jnp.zeros_like, state))["optimizer"]
    checkpoints.close()
    jax.tree.map(np.testing.assert_array_equal, found, state)
    assert jax.tree.map(lambda leaf: leaf.dtype, found) == jax.tree.map(lambda leaf: leaf.dtype, state)
