"""The small parts: what is declared in which collection, positions, dropout, normalisation, and products made beforehand."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.layers.dropout import Drop
from one_layer.layers.materializing import Selecting, materialize, select
from one_layer.layers.matrix import Embedding, Norm, Projection
from one_layer.supermask import Supermask, topk_mask

KEY = jax.random.key(0)


def declared(module: nn.Module, *inputs) -> dict[tuple[str, ...], tuple[int, ...]]:
    shapes = jax.eval_shape(module.init, KEY, *inputs)
    return {path: leaf.shape for path, leaf in flatten_dict(shapes).items()}


@pytest.mark.parametrize(
    ("kind", "keep", "expected"),
    [
        ("trained", 0.5, {("params", "kernel")}),
        ("trained", 1.0, {("params", "kernel")}),
        ("fixed", 0.5, {("random", "kernel")}),
        ("fixed", 1.0, {("random", "kernel")}),
        ("masked", 0.5, {("random", "kernel"), ("params", "scores")}),
        ("masked", 1.0, {("random", "kernel")}),
    ],
)
def test_what_is_trained_and_what_is_random(kind, keep, expected):
    x = jnp.ones((2, 3, 4))
    assert declared(Projection(5, kind, Supermask(keep), False, "float32"), x) == dict.fromkeys(expected, (4, 5))
    with_bias = declared(Projection(5, kind, Supermask(keep), True, "float32"), x)
    assert with_bias == dict.fromkeys(expected, (4, 5)) | {("params", "bias"): (5,)}
    assert declared(Embedding(7, 4, kind, Supermask(keep))) == dict.fromkeys(expected, (7, 4))


def test_a_masked_projection_multiplies_by_what_the_mask_keeps():
    rng = np.random.default_rng(0)
    weights, scores = rng.standard_normal((2, 4, 5)).astype(np.float32)
    x, bias = rng.standard_normal((2, 3, 4)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    variables = {"params": {"scores": scores, "bias": bias}, "random": {"kernel": weights}}
    kept = np.abs(scores) >= np.sort(np.abs(scores), axis=None)[20 - 6]  # keep 0.3 of 20
    y = Projection(5, "masked", Supermask(0.3), True, "float32").apply(variables, jnp.asarray(x))
    np.testing.assert_allclose(y, x @ (weights * kept) + bias, rtol=1e-5, atol=1e-6)
    at_one = Projection(5, "masked", Supermask(1.0), False, "float32").apply(
        {"random": {"kernel": jnp.asarray(weights)}}, jnp.asarray(x)
    )
    np.testing.assert_allclose(at_one, x @ weights, rtol=1e-5, atol=1e-6)


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


def test_materialize_replaces_scores_and_their_weights_by_the_products():
    rng = np.random.default_rng(0)
    alone, shared, several = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in [(4, 5), (4, 5), (3, 4, 5)])
    one_score, scores, more = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in [(4, 5), (3, 4, 5), (3, 4, 5)])
    variables = {
        "params": {
            "alone": {"scores": one_score},
            "stack": {"shared": {"scores": scores, "bias": jnp.ones(5)}, "several": {"scores": more}},
            "norm": {"scale": jnp.ones(5)},
        },
        "random": {
            "alone": {"kernel": alone},
            "stack": {"shared": {"kernel": shared}, "several": {"kernel": several}},
            "frozen": {"kernel": jnp.ones((2, 2))},
        },
        "memory": {"untouched": jnp.ones(1)},
    }
    done = flatten_dict(materialize(variables, Supermask(0.4)), sep="/")
    assert set(done) == {
        "params/stack/shared/bias",
        "params/norm/scale",
        "random/frozen/kernel",
        "materialized/alone/kernel",
        "materialized/stack/shared/kernel",
        "materialized/stack/several/kernel",
        "memory/untouched",
    }
    expected = {
        "alone": alone * topk_mask(one_score, 0.4),
        "stack/shared": shared * jax.vmap(lambda s: topk_mask(s, 0.4))(scores),
        "stack/several": several * jax.vmap(lambda s: topk_mask(s, 0.4))(more),
    }
    for name, product in expected.items():
        np.testing.assert_array_equal(done[f"materialized/{name}/kernel"], product)
    assert "scores" in variables["params"]["alone"], "the variables given must stay as they were"


@pytest.mark.parametrize("together", [False, True])
def test_masks_that_are_selected_together_are_those_of_each_matrix_alone(together):
    rng, mask = np.random.default_rng(0), Supermask(0.3)
    shapes = {
        ("a", "scores"): (3, 6, 4),
        ("b", "scores"): (6, 4),
        ("c", "scores"): (1, 6, 4),
        ("d", "scores"): (2, 5, 4),
    }
    scores = {path: jnp.asarray(rng.standard_normal(shape), jnp.float32) for path, shape in shapes.items()}
    found = select(scores, mask, Selecting(together))
    assert {path: entries.shape for path, entries in found.items()} == shapes
    for path, entries in found.items():
        each = [mask.select(layer) for layer in scores[path].reshape(-1, *shapes[path][-2:])]
        np.testing.assert_array_equal(entries.reshape(-1, *shapes[path][-2:]), each)


def test_materialize_leaves_a_model_without_masks_as_it_is():
    variables = {"params": {"ffn": {"kernel": jnp.ones((2, 2))}}, "random": {"embedding": {"kernel": jnp.ones((2, 2))}}}
    done = materialize(variables, Supermask(0.5))
    assert jax.tree.all(jax.tree.map(jnp.array_equal, {n: done[n] for n in variables}, variables))
    assert not done["materialized"]
