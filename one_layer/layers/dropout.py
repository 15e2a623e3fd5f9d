"""Dropout (Srivastava et al. 2014). Its random bits are the same on every device; a GPU draws them twice in the place of storing them."""

from collections.abc import Hashable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from one_layer.platform import on_gpu

AGAIN = "dropout_again"  # a random stream that is equal to `dropout`, of which XLA does not know this


def streams(key: Array) -> dict[str, Array]:
    """The random streams of a network in training. A GPU has a second one, for the backward pass."""
    if not on_gpu():
        return {"dropout": key}
    # One barrier for all keys: all are drawn in one kernel, where a barrier of its own for each would take two kernels more.
    words = jax.lax.optimization_barrier(jax.random.key_data(key))
    return {"dropout": key, AGAIN: jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))}


class Drop(nn.Module):
    """Dropout, active only if the network is called with a random stream `dropout`, which training alone does."""

    rate: float

    @nn.compact
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        training = self.has_rng("dropout")
        if training and self.rate and on_gpu():
            return _DrawnTwice(self.rate, name="Dropout_0")(x)
        return nn.Dropout(self.rate, name="Dropout_0")(x, deterministic=not training)


class _DrawnTwice(nn.Module):
    """`nn.Dropout` under whose name it stands, and so with its random bits. The backward pass draws them again.

    Otherwise XLA draws the 32 bits of every number of all layers, stores them, compares them, and stores this too: a tenth of all bytes
    that an update reads and writes.
    """

    rate: float

    @nn.compact
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        key = self.make_rng("dropout")
        words = jax.random.key_data(key)
        again = (
            jax.random.key_data(self.make_rng(AGAIN)) if self.has_rng(AGAIN) else jax.lax.optimization_barrier(words)
        )
        return _dropped(self.rate, jax.random.key_impl(key), x, words, again)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _dropped(
    rate: float, kind: Hashable, x: Float[Array, "..."], words: UInt32[Array, "..."], again: UInt32[Array, "..."]
) -> Float[Array, "..."]:
    kept = jax.random.bernoulli(jax.random.wrap_key_data(words, impl=kind), 1.0 - rate, x.shape)
    return jnp.where(kept, x / (1.0 - rate), jnp.zeros_like(x))


def _forward(rate: float, kind: Hashable, x: Array, words: Array, again: Array) -> tuple[Array, Array]:
    return _dropped(rate, kind, x, words, again), again


def _backward(rate: float, kind: Hashable, again: Array, gradient: Array) -> tuple[Array, None, None]:
    # By the other key, XLA does not find that it has drawn these bits before.
    return _dropped(rate, kind, gradient, again, again), None, None


_dropped.defvjp(_forward, _backward)
