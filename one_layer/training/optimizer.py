"""Adam, learning rate schedules and gradient clipping, as in the recipes of the papers (fairseq's; Ott et al. 2018)."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32, Int

from one_layer.runs.settings import OptimConfig

HARD_FROM = 0.85  # the share of updates after which soft signs are signs
Rate = float | Float[Array, ""]  # a number of the config, or traced where one program trains several runs
Pace = Float32[np.ndarray, "5"]


def pace(config: OptimConfig, updates: int) -> Pace:
    """What decides the learning rates of a run of so many updates: `lr`, the first rate, the slope of the warm-up in rate an update, the
    updates of the warm-up, and 1 / the updates after it.

    They are inputs of a run's program, so that runs of other rates and lengths share it.
    """
    assert config.lr is not None and config.warmup is not None  # `plan` has chosen them
    one, warmup, rest = np.float32(1.0), max(config.warmup, 1), max(updates - config.warmup, 1)
    # The slope as XLA computes a quotient of constants: rates have the bits that they had in programs of their own.
    slope = np.float32(config.lr - config.warmup_init_lr) * (one / np.float32(warmup))
    return np.array([config.lr, config.warmup_init_lr, slope, config.warmup, one / np.float32(rest)], np.float32)


def learning_rate(schedule: str, pace: Pace | Float[Array, "5"], count: int | Int[Array, ""]) -> Float[Array, ""]:
    """The learning rate of the update after `count` others, by `optim.schedule` and the run's `pace`.

    - `inverse_sqrt`: linear from `warmup_init_lr` to `lr` over the warm-up, then lr·√(warmup/t) (Vaswani et al. 2017, section 5.3).
    - `cosine`: the same warm-up, then down a cosine to 0 after the last update, so that masks stop flipping.
    - `linear`: the same warm-up, then down a straight line to 0 (Liu et al. 2019, table 10).
    """
    lr, first, slope, warmup, of_rest = pace
    step = jnp.asarray(count, jnp.float32)
    share = jnp.clip((step - warmup) * of_rest, 0.0, 1.0)
    if schedule == "cosine":
        falling = lr * (1.0 + jnp.cos(jnp.pi * share)) / 2.0
    elif schedule == "linear":
        falling = lr * (1.0 - share)
    else:
        falling = lr * jnp.sqrt(jnp.maximum(warmup, 1.0) / jnp.maximum(step, 1.0))
    return jnp.where(step < warmup, first + slope * step, falling)


def temperature(softness: Rate, pace: Pace | Float[Array, "5"], count: int | Int[Array, ""]) -> Float[Array, ""]:
    """The T of signs tanh(S / T) in the update after `count` others: `softness`·lr·(1 − s / 0.85).

    s is the share of the updates after the warm-up that are done. Scores have no scale of their own but the rate at which they move, so T
    is counted in steps of the peak rate. Where it would be 0, so that signs are signs, it is the least float: a score of 0 would be
    divided by it.
    """
    lr, _, _, warmup, of_rest = pace
    share = (jnp.asarray(count, jnp.float32) - warmup) * of_rest
    return jnp.maximum(softness * lr * (1.0 - jnp.clip(share / HARD_FROM, 0.0, 1.0)), jnp.finfo(jnp.float32).tiny)


def optimizer(config: OptimConfig) -> optax.GradientTransformationExtraArgs:
    """Clipping, Adam and decoupled weight decay p −= lr·wd·p, in this order. Gradients must be divided by the targets' count before.

    Each update is told the run's `pace`. Numbers of `config` may be traced; a traced one stands for numbers that are not 0.
    """
    return optax.chain(
        _clip(config.clip) if is_on(config.clip) else optax.identity(),
        _adam(config.b1, config.b2, config.eps),
        optax.add_decayed_weights(config.weight_decay) if is_on(config.weight_decay) else optax.identity(),
        _at_pace(config.schedule),
    )


def _at_pace(schedule: str) -> optax.GradientTransformationExtraArgs:
    def scaling(pace: Any) -> optax.GradientTransformation:
        return optax.scale_by_learning_rate(partial(learning_rate, schedule, pace))

    def update(updates: Any, state: Any, params: Any = None, *, pace: Any, **_: Any) -> tuple[Any, Any]:
        return scaling(pace).update(updates, state, params)

    return optax.GradientTransformationExtraArgs(scaling(None).init, update)


def is_on(rate: Rate) -> bool:
    """Whether a number, which may be traced, is not 0."""
    return isinstance(rate, jax.core.Tracer) or bool(rate)


def _clip(limit: Rate) -> optax.GradientTransformation:
    """Scales by min(1, limit / (norm + 1e-6)), as torch does, and therefore the reference; optax has no 1e-6."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        scale = jnp.minimum(1.0, limit / (optax.tree.norm(updates) + 1e-6))
        return jax.tree.map(lambda g: g * scale, updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


class AdamState(NamedTuple):
    """Number of updates so far, and the running means of the gradient and of its square."""

    updates: Int[Array, ""]
    mean: Any
    square: Any


def _adam(b1: Rate, b2: Rate, eps: Rate) -> optax.GradientTransformation:
    """Adam, with eps added to √v before bias correction, as in the reference; optax.adam adds it after the correction."""

    def init(params: Any) -> AdamState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: AdamState, params: Any = None) -> tuple[Any, AdamState]:
        count = state.updates + 1
        mean = jax.tree.map(lambda g, m: b1 * m + (1.0 - b1) * g, updates, state.mean)
        square = jax.tree.map(lambda g, v: b2 * v + (1.0 - b2) * g * g, updates, state.square)
        step = jnp.sqrt(_correction(b2, count)) / _correction(b1, count)
        steps = jax.tree.map(lambda m, v: step * m / (jnp.sqrt(v) + eps), mean, square)
        return steps, AdamState(count, mean, square)

    return optax.GradientTransformation(init, update)


def _correction(decay: Rate, count: Int[Array, ""]) -> Float[Array, ""]:
    """The bias correction 1 − decay^count. It uses expm1, because 1 − 0.9999 computed with a power is off by 2e-4 in float32."""
    if not is_on(decay):
        return jnp.float32(1.0)
    return -jnp.expm1(count * (jnp.log(decay) if isinstance(decay, jax.core.Tracer) else math.log(decay)))
