"""The backward pass through a reservoir, left out: a small network, the policy, proposes the gradient of the reservoir's input.

What the published text says (arXiv 2012.15045, abstract and introduction): "the backward pass can be entirely skipped by approximating
top-layer gradients using an approach we call backskipping, with a relatively small sacrifice in performance". The paper trains the policy
by REINFORCE with continuous actions a ~ N(μ, 1) and a value network as baseline; the reward is the negative mean gradient of the layer
above. True gradients are computed in a warm-up, and later with a probability that decays by the factor 0.99 with each update.

What is this project's reading, because no code is known:

- The policy sees the gradient g of the reservoir's output at each token, divided by its root mean square r over the batch: ĝ = g / r. Its
  action is in the same unit, so the proposed gradient is r · a. μ(ĝ) = ĝ + tanh(ĝ A) B with B = 0 at first, which is `identity` with noise.
  One policy serves all reservoirs. Tokens without a gradient (pads) get none. A decoder's reservoir also reads
  the encoded source: nothing is proposed for this input, whose gradient is computed (see `one_layer.layers.mixed`).
- The value network sees the mean of |ĝ| over the tokens.
- An action changes the layers below, and so the gradient of the next update. So the reward of an action is that of the next update:
  minus the mean |g| over tokens, features and reservoirs (see `one_layer.training.backskipping`).

In the backward pass, the cotangent of the policy's parameters is not a gradient of the loss: it is the eligibility Σ (a − μ) ∂μ/∂θ, which
is the score function ∂ log N(a; μ, 1) / ∂θ. The cotangents of `reports`, which are zeros, carry the mean |g| and the value network's input.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from one_layer.initializers import random_weights

Tree = dict[str, Any]

HIDDEN = 32  # features of the hidden layers of both networks


def networks(seed: int, d_model: int) -> dict[str, dict[str, Array]]:
    """The parameters of `policy` and `value` before training."""

    def drawn(role: str, rows: int) -> Array:
        return jnp.asarray(random_weights(seed, f"backskip/{role}", (rows, HIDDEN), "xavier_uniform"))

    return {
        "policy": {"in": drawn("policy/in", d_model), "out": jnp.zeros((HIDDEN, d_model))},
        "value": {"in": drawn("value/in", d_model), "out": jnp.zeros(HIDDEN), "bias": jnp.zeros(())},
    }


def mean_action(policy: dict[str, Array], state: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """μ."""
    return state + jnp.tanh(state @ policy["in"]) @ policy["out"]


def value(parameters: dict[str, Array], state: Float[Array, "d"]) -> Float[Array, ""]:
    """The reward that the value network expects."""
    return jnp.tanh(state @ parameters["in"]) @ parameters["out"] + parameters["bias"]


def no_reports(d_model: int) -> dict[str, Array]:
    """Zeros, whose cotangents are sums over the reservoirs: the mean |g|, the value network's input, and the number of reservoirs."""
    return {"gradient": jnp.zeros(()), "state": jnp.zeros(d_model), "count": jnp.zeros(())}


@jax.custom_vjp
def observed(y: Float[Array, "*batch d"], reports: dict[str, Array]) -> Float[Array, "*batch d"]:
    """`y`. Its gradient is passed on, and reported."""
    return y


observed.defvjp(lambda y, reports: (y, None), lambda _, gradient: (gradient, _report(gradient.astype(jnp.float32))))


@jax.custom_vjp
def proposed(
    x: Float[Array, "*batch d"],
    y: Float[Array, "*batch d"],
    policy: dict[str, Array],
    reports: dict[str, Array],
    key: UInt32[Array, "words"],
) -> Float[Array, "*batch d"]:
    """`y`; but `x` gets the gradient that the policy proposes. What else `y` depends on gets the true one."""
    return y


def _proposed_backward(kept: tuple[Tree, Array], gradient: Array) -> tuple[Array, Array, Tree, Tree, np.ndarray]:
    policy, key = kept
    g = gradient.astype(jnp.float32)
    scaled, size, real = _scaled(g)
    mean, pull_back = jax.vjp(lambda policy: mean_action(policy, scaled), policy)
    noise = jax.random.normal(jax.random.wrap_key_data(key), g.shape) * real
    (eligibility,) = pull_back(noise)
    action = (size * (mean + noise) * real).astype(gradient.dtype)
    return action, gradient, eligibility, _report(g), np.zeros(key.shape, jax.dtypes.float0)


proposed.defvjp(lambda x, y, policy, reports, key: (y, (policy, key)), _proposed_backward)


def _scaled(g: Float[Array, "*batch d"]) -> tuple[Float[Array, "*batch d"], Float[Array, ""], Bool[Array, "*batch 1"]]:
    """ĝ, r, and which tokens have a gradient."""
    real = jnp.any(g != 0, axis=-1, keepdims=True)
    size = jnp.sqrt(jnp.sum(g * g) / jnp.maximum(jnp.sum(real) * g.shape[-1], 1))
    return g / jnp.where(size > 0, size, 1.0), size, real


def _report(g: Float[Array, "*batch d"]) -> dict[str, Array]:
    scaled, size, real = _scaled(g)
    tokens = jnp.maximum(jnp.sum(real), 1)
    state = jnp.sum(jnp.abs(scaled), axis=tuple(range(g.ndim - 1))) / tokens
    return {"gradient": size * jnp.mean(state), "state": state, "count": jnp.ones(())}
