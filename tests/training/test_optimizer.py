"""Adam, clipping, decay and schedules as the reference orders them, against NumPy in float64."""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from one_layer.runs.settings import SCHEDULES, OptimConfig
from one_layer.training.optimizer import learning_rate, optimizer, pace, temperature
from tests import user_error

CONFIG = OptimConfig(
    lr=0.1, warmup=3, warmup_init_lr=0.02, b1=0.9, b2=0.98, eps=0.05, weight_decay=0.3, clip=1.5, label_smoothing=0.0
)


def rate(config: OptimConfig, t: int) -> float:
    """The learning rate of update t + 1 by the inverse square root."""
    if t < config.warmup:
        return config.warmup_init_lr + t * (config.lr - config.warmup_init_lr) / config.warmup
    return config.lr * math.sqrt(config.warmup / t)


def rates_of(config: OptimConfig, updates: int) -> optax.Schedule:
    return partial(learning_rate, config.schedule, pace(config, updates))


def by_hand(config: OptimConfig, params: np.ndarray, gradients: list[np.ndarray]) -> list[np.ndarray]:
    """Clip by min(1, c / (norm + 1e-6)); p -= wd lr p; Adam with eps beside the uncorrected root; update t uses rate t - 1."""
    mean, square, found = np.zeros_like(params), np.zeros_like(params), []
    for t, gradient in enumerate(gradients, start=1):
        if config.clip:
            gradient = gradient * min(1.0, config.clip / (np.linalg.norm(gradient) + 1e-6))
        lr = rate(config, t - 1)
        params = params - config.weight_decay * lr * params
        mean = config.b1 * mean + (1 - config.b1) * gradient
        square = config.b2 * square + (1 - config.b2) * gradient**2
        step = lr * math.sqrt(1 - config.b2**t) / (1 - config.b1**t)
        params = params - step * mean / (np.sqrt(square) + config.eps)
        found.append(params)
    return found


def run(config: OptimConfig, params: np.ndarray, gradients: list[np.ndarray]) -> list[np.ndarray]:
    """The same with the project's optimiser, the vector cut into a tree of two leaves."""
    transformation = optimizer(config)
    update, found = jax.jit(partial(transformation.update, pace=pace(config, len(gradients)))), []

    def cut(vector):
        return {"a": jnp.asarray(vector[:4], jnp.float32), "b": {"c": jnp.asarray(vector[4:], jnp.float32)}}

    tree = cut(params)
    state = transformation.init(tree)
    for gradient in gradients:
        changes, state = update(cut(gradient), state, tree)
        tree = optax.apply_updates(tree, changes)
        found.append(np.concatenate([tree["a"], tree["b"]["c"]]))
    return found


@pytest.mark.parametrize(
    "changes", [{}, {"clip": 0.0}, {"weight_decay": 0.0}, {"eps": 1e-8, "warmup_init_lr": 0.0}, {"b1": 0, "b2": 0.9999}]
)
def test_five_updates_equal_the_reference(changes):
    config = dataclasses.replace(CONFIG, **changes)
    rng = np.random.default_rng(0)
    params = rng.standard_normal(10)
    # Norms on either side of the clip.
    gradients = [rng.standard_normal(10) * size for size in (3.0, 0.1, 1.0, 0.3, 2.0)]
    for ours, expected in zip(run(config, params, gradients), by_hand(config, params, gradients), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_a_zero_gradient_is_no_division_by_zero():
    params = np.random.default_rng(0).standard_normal(10)
    config = dataclasses.replace(CONFIG, weight_decay=0.0, eps=1e-8)
    for found in run(config, params, [np.zeros(10)] * 3):
        np.testing.assert_array_equal(found, params.astype(np.float32))


@pytest.mark.parametrize("start", [0.0, 1e-7])
def test_inverse_square_root(start):
    config = OptimConfig(lr=5e-4, warmup=4000, warmup_init_lr=start)
    schedule = jax.jit(rates_of(config, 50_000))
    for t in (0, 1, 2, 1999, 3999, 4000, 4001, 16_000, 50_000):
        np.testing.assert_allclose(schedule(jnp.int32(t)), rate(config, t), rtol=1e-5, atol=1e-12)
    assert schedule(jnp.int32(0)) == np.float32(start)
    assert schedule(jnp.int32(4000)) == pytest.approx(5e-4)
    assert schedule(jnp.int32(16_000)) == pytest.approx(2.5e-4)


def test_cosine_rises_peaks_and_ends_at_zero():
    config = OptimConfig(lr=1e-3, schedule="cosine", warmup=100, warmup_init_lr=1e-5)
    rates = np.asarray(jax.jit(jax.vmap(rates_of(config, 1000)))(jnp.arange(1101)))
    np.testing.assert_allclose(rates[:101], np.linspace(1e-5, 1e-3, 101), rtol=1e-5)
    assert rates.argmax() == 100
    assert (np.diff(rates[100:1001]) < 0).all()
    assert rates[550] == pytest.approx(5e-4, rel=1e-4)
    np.testing.assert_allclose(rates[1000:], 0.0, atol=1e-9)


def test_linear_rises_and_falls_in_straight_lines():
    config = OptimConfig(lr=1e-3, schedule="linear", warmup=100)
    rates = np.asarray(jax.vmap(rates_of(config, 1000))(jnp.arange(1101)))
    np.testing.assert_allclose(rates[:101], np.linspace(0, 1e-3, 101), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(rates[100:1001], np.linspace(1e-3, 0, 901), rtol=1e-4, atol=1e-9)
    assert not rates[1000:].any()


def test_the_temperature_falls_from_so_many_steps_of_the_peak_rate_to_nearly_0_but_is_never_0():
    """It is 0 for no number of updates, nor at a rate of 0: a score of 0 would be divided by it."""
    rates = pace(OptimConfig(lr=0.01, warmup=100), 1000)
    found = np.asarray(jax.vmap(partial(temperature, 12.0, rates))(jnp.arange(1101)))
    np.testing.assert_allclose(found[[0, 100, 550]], [0.12, 0.12, 0.12 * (1 - 0.5 / 0.85)], rtol=1e-5)
    assert (np.diff(found[100:865]) < 0).all()
    assert (found[866:] > 0).all() and (found[866:] < 1e-30).all()
    assert temperature(12.0, pace(OptimConfig(lr=0.0, warmup=0), 10), 0) > 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_a_warm_up_the_rate_starts_at_its_peak(schedule):
    config = OptimConfig(lr=1e-3, schedule=schedule, warmup=0)
    rates = np.asarray(jax.vmap(rates_of(config, 100))(jnp.arange(100)))
    assert rates[0] == pytest.approx(1e-3)
    assert np.isfinite(rates).all() and (rates <= np.float32(1e-3)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schedule", "step"),
        ("lr", -1e-3),
        ("lr", float("nan")),
        ("warmup", -1),
        ("warmup_init_lr", -1e-7),
        ("weight_decay", -0.1),
        ("clip", -1.0),
        ("b1", 1.0),
        ("b2", -0.1),
        ("eps", -1e-8),
        ("eps", 0.0),
        ("label_smoothing", 1.0),
        ("label_smoothing", float("nan")),
        ("softness", -1.0),
        ("softness", float("nan")),
        ("accumulate", 0),
    ],
)
def test_values_that_no_optimiser_has_are_refused_by_name(name, value):
    with user_error(f"optim.{name} is {value!r}"):
        OptimConfig(**{name: value})
