"""The small parts: what is declared in which collection, positions, dropout, normalisation, and products made beforehand."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from examples.own_selection import TwoOfFour
from one_layer.layers.dropout import Drop
from one_layer.layers.materializing import Selecting, select
from one_layer.layers.matrix import Norm
from one_layer.supermask import Supermask
from tests import mostly_slow

KEY = jax.random.key(0)
SHAPES = ((3, 6, 4), (6, 4), (1, 6, 4), (2, 5, 4))
MASKS = [Supermask(0.3), Supermask(0.3, "score"), Supermask(selection="threshold", threshold=0.2), TwoOfFour()]


def declared(module: nn.Module, *inputs) -> dict[tuple[str, ...], tuple[int, ...]]:
    shapes = jax.eval_shape(module.init, KEY, *inputs)
    return {path: leaf.shape for path, leaf in flatten_dict(shapes).items()}


def test_dropout_drops_its_share_and_keeps_the_mean():
    x = jnp.ones((200, 200))
    y = np.asarray(Drop(0.3).apply({}, x, rngs={"dropout": KEY}))
    assert np.mean(y == 0) == pytest.approx(0.3, abs=0.02)
    np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=1e-6)
    np.testing.assert_array_equal(Drop(0.3).apply({}, x, rngs={"dropout": KEY}), y)
    assert not np.array_equal(Drop(0.3).apply({}, x, rngs={"dropout": jax.random.key(1)}), y)
    np.testing.assert_array_equal(Drop(0.0).apply({}, x, rngs={"dropout": KEY}), x)


@pytest.mark.parametrize("kind", ["plain", "affine", "frozen"])
def test_norm_is_layer_norm_with_a_small_epsilon(kind):
    rng = np.random.default_rng(0)
    # The second row's variance is of the size of epsilon, the third's mean is large against its spread.
    x = np.stack([rng.standard_normal(8), rng.standard_normal(8) * 3e-3, rng.standard_normal(8) + 1e3])
    scale, shift = rng.standard_normal((2, 8)) if kind != "plain" else (1.0, 0.0)
    collection = {"plain": None, "affine": "params", "frozen": "frozen"}[kind]
    variables = {collection: {"layer_norm": {"scale": scale, "bias": shift}}} if collection else {}
    centred = x - x.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    y = Norm(kind, "float32").apply(jax.tree.map(jnp.float32, variables), jnp.float32(x))
    np.testing.assert_allclose(y[:2], expected[:2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y[2], expected[2], atol=1e-3)
    assert {path[0] for path in declared(Norm(kind, "float32"), x.astype(np.float32))} == {collection} - {None}


def test_norm_in_bfloat16_has_float32_statistics():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 512)) + 8, jnp.bfloat16)
    y = Norm("plain", "bfloat16").apply({}, x)
    assert y.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(y, np.float32).std(axis=1), 1.0, atol=2e-2)
    expected = Norm("plain", "float32").apply({}, x.astype(jnp.float32))
    np.testing.assert_allclose(np.asarray(y, np.float32), expected, rtol=2**-7, atol=1e-3)


@pytest.mark.parametrize("at_once", ["one", "shape", "all"])
@pytest.mark.parametrize("mask", mostly_slow(MASKS, MASKS[::3]))
def test_masks_that_are_selected_at_once_are_those_of_each_matrix_alone(at_once, mask):
    """Also by a class of one's own; and a NaN breaks the mask of its own matrix alone."""
    rng = np.random.default_rng(0)
    shapes = {(name, "scores"): shape for name, shape in zip("abcd", SHAPES, strict=True)}
    scores = {path: jnp.asarray(rng.standard_normal(shape), jnp.float32) for path, shape in shapes.items()}
    scores["a", "scores"] = scores["a", "scores"].at[1, 2, 3].set(jnp.nan)
    found = select(scores, mask, Selecting(at_once))
    assert {path: entries.shape for path, entries in found.items()} == shapes
    for path, entries in found.items():
        each = [mask.select(layer) for layer in scores[path].reshape(-1, *shapes[path][-2:])]
        np.testing.assert_array_equal(entries.reshape(-1, *shapes[path][-2:]), each)
