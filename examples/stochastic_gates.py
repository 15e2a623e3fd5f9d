"""Stochastic gates with a price on each open one (Yamada et al. 2020, arXiv 1810.04247), trained by the loop of examples/paper.py.

.venv/bin/python -m examples.stochastic_gates

A gate z multiplies each weight: z = μ + ε, cut to 0 and 1, with ε from a normal distribution of the deviation σ = 0.5. Its gradient needs
no straight-through rule. The loss has the expected share of gates that are not closed, P(z > 0) = Φ(μ / σ), times PRICE. The test set is
translated with a mask: each gate whose μ is above a half is open, and all others are closed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from examples.bernoulli_masks import kept, said
from examples.paper import test, toy, train
from one_layer.layers.trees import Variables
from one_layer.supermask import Supermask

DEVIATION = 0.5
PRICE = 0.02  # nats per token, for a network whose gates are all open
STEEPNESS = 20.0  # the scores begin within 0.09 of 0, and so μ within 1.8 of a half


class Gates(Supermask):
    """What multiplies a weight is no bit but the gate itself, with its own gradient."""

    def applied(self, entries: Array, scores: Float[Array | np.ndarray, "*shape"], axis: int) -> Float[Array, "*shape"]:
        return jnp.clip(scores, 0.0, 1.0)


def means(scores: Variables) -> Variables:
    """μ of each gate."""
    return jax.tree.map(lambda scores: 0.5 + STEEPNESS * scores, scores)


def drawn(scores: Variables, key: jax.Array | None) -> Variables:
    """The gates: drawn with a key, else open or closed."""
    if key is None:
        return jax.tree.map(lambda mean: (mean > 0.5).astype(mean.dtype), means(scores))
    noise = optax.tree.random_like(key, scores, jax.random.normal)
    return jax.tree.map(lambda mean, noise: mean + DEVIATION * noise, means(scores), noise)


def penalty(scores: Variables) -> jax.Array:
    """PRICE times the expected share of gates that are not closed."""
    open_gates = jax.tree.map(lambda mean: jax.scipy.stats.norm.cdf(mean / DEVIATION), means(scores))
    return PRICE * optax.tree.sum(open_gates) / optax.tree.size(open_gates)


def main(updates: int = 400) -> tuple[list[float], float, float]:
    corpus, config = toy()
    gates = Gates(selection="threshold")
    variables, losses = train(corpus, config, gates, updates, lr=1e-2, drawn=drawn, penalty=penalty)
    return losses, *said(test(corpus, config, variables), kept(variables))


if __name__ == "__main__":
    main()
