"""Flips of mask bits are counted exactly."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.supermask import Supermask
from one_layer.training.flips import flipped_share, masks_of
from tests.test_supermask import stable_sort

selected = jax.jit(masks_of, static_argnums=1)
quick = settings(max_examples=20, deadline=None, derandomize=True)


def params(seed):
    random = np.random.default_rng(seed)
    shapes = {"embedding": (6, 4), "stack": (3, 4, 8), "odd": (2, 3, 3)}
    tree = {name: {"scores": jnp.asarray(random.integers(-3, 4, shape), jnp.float32)} for name, shape in shapes.items()}
    return {**tree, "norm": {"scale": jnp.ones((3, 4))}}


def numpy_masks(tree, keep):
    """Mask bits by name, a row for every layer."""
    return {
        name: np.stack([stable_sort(layer, keep) for layer in np.asarray(tree[name]["scores"]).reshape(layers, -1)])
        for name, layers in (("embedding", 1), ("stack", 3), ("odd", 2))
    }


@quick
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_share_of_flips_is_exact(first, second):
    masks = [numpy_masks(params(seed), 0.5).values() for seed in (first, second)]
    before, after = (np.concatenate([bits.reshape(-1) for bits in each]) for each in masks)
    share = flipped_share(selected(params(first), Supermask()), selected(params(second), Supermask()))
    assert share == np.mean(before != after)


def test_flips_of_masks_with_a_sign_are_all_counted():
    """From -1, 0, 1, 1, -1 to 0, -1, -1, 1, -1: three of five entries change."""
    before, after = (
        masks_of(
            {"scores": jnp.asarray([scores], jnp.float32).T}, Supermask(selection="signed_threshold", threshold=1.0)
        )
        for scores in ([-2, 0, 2, 2, -2], [0, -2, -2, 2, -2])
    )
    assert flipped_share(before, after) == 3 / 5
    assert flipped_share(before, before) == 0
