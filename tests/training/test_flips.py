"""Flips of mask bits are counted exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.supermask import Supermask
from one_layer.training.flips import PackedMask, flipped_share, packed_masks

packed = jax.jit(packed_masks, static_argnums=1)
quick = settings(max_examples=20, deadline=None, derandomize=True)


def numpy_mask(scores, keep):
    """The k entries of largest |score|, the lower index winning a tie."""
    order = np.argsort(-np.abs(scores).reshape(-1), kind="stable")
    mask = np.zeros(scores.size, np.uint8)
    mask[order[: scores.size - int((1 - keep) * scores.size)]] = 1
    return mask


def params(seed):
    random = np.random.default_rng(seed)
    shapes = {"embedding": (6, 4), "stack": (3, 4, 8), "odd": (2, 3, 3)}
    tree = {name: {"scores": jnp.asarray(random.integers(-3, 4, shape), jnp.float32)} for name, shape in shapes.items()}
    return {**tree, "norm": {"scale": jnp.ones((3, 4))}}


def numpy_masks(tree, keep):
    """Mask bits by name, a row for every layer."""
    return {
        name: np.stack([numpy_mask(layer, keep) for layer in np.asarray(tree[name]["scores"]).reshape(layers, -1)])
        for name, layers in (("embedding", 1), ("stack", 3), ("odd", 2))
    }


@quick
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 0.9]))
def test_masks_are_packed_bit_for_bit(seed, keep):
    tree = params(seed)
    masks = packed(tree, Supermask(keep))
    found = numpy_masks(tree, keep)
    assert set(masks) == {f"{name}/scores" for name in found}
    for name, bits in found.items():
        mask = masks[f"{name}/scores"]
        matrices = bits.reshape(len(bits), *tree[name]["scores"].shape[-2:])
        packed_bits = np.packbits(matrices, axis=1)
        np.testing.assert_array_equal(np.asarray(mask.bits).reshape(packed_bits.shape), packed_bits)
        assert mask.count == bits.size


@quick
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_share_of_flips_is_exact(first, second):
    masks = [numpy_masks(params(seed), 0.5).values() for seed in (first, second)]
    before, after = (np.concatenate([bits.reshape(-1) for bits in each]) for each in masks)
    share = flipped_share(packed(params(first), Supermask()), packed(params(second), Supermask()))
    assert share == np.mean(before != after)


def test_flips_of_masks_with_a_sign_are_all_counted():
    """From -1, 0, 1, 1, -1 to 0, -1, -1, 1, -1: three of five entries change."""
    before, after = (
        packed_masks(
            {"scores": jnp.asarray([scores], jnp.float32).T}, Supermask(selection="signed_threshold", threshold=1.0)
        )
        for scores in ([-2, 0, 2, 2, -2], [0, -2, -2, 2, -2])
    )
    assert flipped_share(before, after) == 3 / 5
    assert flipped_share(before, before) == 0


def test_filling_bits_do_not_count():
    """A column of 5 weights makes a byte of which 3 bits mean nothing."""
    trees = [{"scores": jnp.asarray([scores], jnp.float32).T} for scores in ([5, 4, 3, 2, 1], [1, 2, 3, 4, 5])]
    before, after = (packed_masks(tree, Supermask(0.4)) for tree in trees)
    assert flipped_share(before, after) == 4 / 5


def test_no_flips_and_all():
    masks, others = ({"a": PackedMask(jnp.asarray([bits], jnp.uint8), (), 16)} for bits in ([0, 255], [255, 0]))
    assert flipped_share(masks, masks) == 0
    assert flipped_share(masks, others) == 1
