"""Masks drawn from probabilities (Zhou et al. 2019, arXiv 1905.01067), trained by the loop of examples/paper.py.

.venv/bin/python -m examples.bernoulli_masks

Each weight has a probability p = σ(S). Each update draws a mask that keeps every weight with its probability: where p is above a number
drawn evenly from 0 to 1. The gradient of the mask passes straight to p. The test set is translated with one mask, which keeps the weights
whose probability is above a half.
"""

import jax
import jax.numpy as jnp
import optax

from examples.paper import test, toy, train
from one_layer.layers.trees import Variables
from one_layer.supermask import Supermask

MASK = Supermask(selection="threshold", threshold=0.5)
STEEPNESS = 100.0  # the scores begin within 0.09 of 0: without it, all probabilities would stay near a half


def drawn(scores: Variables, key: jax.Array | None) -> Variables:
    """The probabilities; with a key, each is moved so that it passes a half as often as it says."""
    probabilities = jax.tree.map(lambda scores: jax.nn.sigmoid(STEEPNESS * scores), scores)
    if key is None:
        return probabilities
    uniform = optax.tree.random_like(key, scores, jax.random.uniform)
    return jax.tree.map(lambda p, u: p + 0.5 - u, probabilities, uniform)


def kept(variables: Variables) -> float:
    """The share of the weights of all matrices and depths that the masks keep."""
    products = jax.tree.leaves(variables["materialized"])
    return sum(int(jnp.count_nonzero(product)) for product in products) / sum(product.size for product in products)


def said(right: float, share: float) -> tuple[float, float]:
    print(
        f"{right:.0%} of the test sentences are translated word for word as the reference; {share:.1%} of weights kept"
    )
    return right, share


def main(updates: int = 400) -> tuple[list[float], float, float]:
    corpus, config = toy()
    variables, losses = train(corpus, config, MASK, updates, lr=1e-2, drawn=drawn)
    return losses, *said(test(corpus, config, variables), kept(variables))


if __name__ == "__main__":
    main()
