"""A selection of weights of one's own, trained by the loop of examples/paper.py.

.venv/bin/python -m examples.own_selection

The paper keeps the half of a matrix with the largest scores, wherever they are. Here a mask keeps two of any four neighbours in a row. A
selection is a class with the method `select`, which makes the entries of a mask from scores, without a gradient. The class that it
extends passes the gradient of the mask straight through to the scores.

Whole runs take it too, with tickets, pages and reports:

.venv/bin/python main.py --config=configs/toy.py --workdir=runs/two_of_four --config.model.selection=examples.own_selection:TwoOfFour
"""

import jax
import jax.numpy as jnp
import numpy as np

from examples.paper import test, toy, train
from one_layer.supermask import Supermask


class TwoOfFour(Supermask):
    """Keeps the two entries with the largest magnitudes of any four neighbours in a row."""

    by = "magnitude"  # the gradient passes to |S|, by which it selects
    stored_as = "threshold"  # in tickets: masks of 0 and 1, whatever decided them

    def select(self, scores: jax.Array | np.ndarray) -> jax.Array:
        fours = jnp.abs(jax.lax.stop_gradient(jnp.asarray(scores))).reshape(-1, 4)
        _, kept = jax.lax.top_k(fours, 2)  # of equal ones the first
        return jax.nn.one_hot(kept, 4, dtype=jnp.int8).sum(axis=-2, dtype=jnp.int8).reshape(scores.shape)


def main(updates: int = 400) -> tuple[list[float], float, set[int]]:
    corpus, config = toy()
    variables, losses = train(corpus, config, TwoOfFour(), updates)
    right = test(corpus, config, variables)
    print(f"{right:.0%} of the test sentences are translated word for word as the reference")
    product = np.asarray(
        variables["materialized"]["encoder"]["layers"]["ffn_in"]["kernel"]
    )  # W ⊙ M, [layers, 128, 256]
    kept = set(np.count_nonzero(product.reshape(-1, 4), axis=1).tolist())
    print(f"weights that the first feed-forward projection keeps of any four neighbours: {kept}")
    return losses, right, kept


if __name__ == "__main__":
    main()
