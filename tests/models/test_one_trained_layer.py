"""`model.weights=dense model.sharing=weights`: one trained layer for all depths, with gains, adapters, norms and biases of each depth."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, build, initialize
from one_layer.models.accounting import account
from one_layer.tasks.losses import label_smoothed_nll
from tests import user_error
from tests.compiling import jit
from tests.models.test_translation import SOURCE, token_by_token

SIZES = {"d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 3}
APART = ModelConfig(11, 13, **SIZES, weights="dense")
SHARED = APART.replace(sharing="weights", gains="columns")
TARGET = np.array([[2, 5, 6, 7, 8], [2, 9, 10, 4, 6]])


def made() -> dict[str, Any]:
    """The shared model's `params`, with gains, norms and biases that are not 1 and 0."""
    noise = np.random.default_rng(1)
    return jax.tree.map(lambda x: x + noise.normal(0, 0.2, x.shape).astype(np.float32), initialize(SHARED, 7)["params"])


def unshared(params: dict[str, Any]) -> dict[str, Any]:
    """The same function as L layers: the matrix of a depth is G ⊙ W."""
    flat, found = flatten_dict(params), {}
    for path, leaf in flat.items():
        if path[-1] == "column_gain":
            continue
        columns = flat.get((*path[:-1], "column_gain"))
        found[path] = leaf * columns[:, None, :] if path[-1] == "kernel" and columns is not None else leaf
    return unflatten_dict(found)


def loss(config: ModelConfig, params: dict[str, Any]) -> jax.Array:
    logits = build(config).apply({"params": params}, SOURCE, TARGET)
    return label_smoothed_nll(logits, jnp.asarray(TARGET), 0.1)[0]


def test_it_computes_what_l_layers_with_these_matrices_do():
    params = made()
    ours = jit(build(SHARED).apply)({"params": params}, SOURCE, TARGET)
    theirs = jit(build(APART).apply)({"params": unshared(params)}, SOURCE, TARGET)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_multiplied_out_once_it_is_the_same_and_so_is_token_by_token():
    variables = {"params": made(), "random": {}}
    applied = materialize(variables, SHARED.supermask)
    assert not [path for path in flatten_dict(applied["params"]) if path[-1] == "column_gain"]
    whole = jit(build(SHARED).apply)
    for given in (variables, applied):
        found, tokens = token_by_token(SHARED, given, 5, beams=2)
        for beam in range(2):
            expected = whole(variables, SOURCE, tokens[beam::2])
            np.testing.assert_allclose(whole(given, SOURCE, tokens[beam::2]), expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found[beam::2], expected, rtol=1e-4, atol=1e-4)


def test_its_gradient_is_the_sum_over_the_depths():
    params = made()
    ours = flatten_dict(jit(jax.grad(lambda p: loss(SHARED, p)))(params))
    theirs = flatten_dict(jit(jax.grad(lambda p: loss(APART, p)))(unshared(params)))
    flat = flatten_dict(params)
    for path in (path for path in ours if (*path[:-1], "column_gain") in ours and path[-1] == "kernel"):
        summed = (theirs[path] * flat[*path[:-1], "column_gain"][:, None, :]).sum(axis=0)
        np.testing.assert_allclose(ours[path], summed, rtol=1e-3, atol=1e-6)


def test_a_file_has_its_matrices_once():
    shared, apart = (account(config)["bytes"]["ticket"] for config in (SHARED.replace(gains="none"), APART))
    matrices = {"encoder": 4 * 64 + 2 * 96, "decoder": 8 * 64 + 2 * 96}
    assert apart - shared == 4 * (matrices["encoder"] + 2 * matrices["decoder"])


@pytest.mark.parametrize("key", [{"gains": "columns"}, {"adapter_rank": 2}])
def test_layers_with_matrices_of_their_own_have_nothing_beside_them(key):
    with user_error(r"leave model.* out, or give model.sharing=weights"):
        APART.replace(**key)
