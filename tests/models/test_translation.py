"""The whole model: its numbers, what it may look at, decoding token by token, and what is trained, random or neither."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.layers.matrix import materialize
from one_layer.models import ModelConfig, build, empty_cache, initialize
from one_layer.tasks.losses import label_smoothed_nll
from tests import numpy_transformer
from tests.compiling import jit

TINY = ModelConfig(11, 13, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
SOURCE = np.array([[4, 5, 6, 7, 8, 2], [1, 1, 9, 10, 3, 2]])
TARGET = np.array([[2, 5, 6, 7, 8], [2, 9, 10, 1, 1]])
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


@dataclass(frozen=True)
class Case:
    """A model, its variables, and its compiled forward pass."""

    config: ModelConfig
    variables: dict[str, Any]
    logits: Any


def make(**changes: Any) -> Case:
    config = TINY.replace(embedding=None, norm=None, bias=None, **changes)
    variables = initialize(config, 7)
    # Biases of 0 and scales of 1 would hide that they are left out.
    noise = np.random.default_rng(1)
    params = jax.tree_util.tree_map_with_path(
        lambda path, x: x + noise.normal(0, 0.3, x.shape).astype(np.float32) * (path[-1].key in ("bias", "scale")),
        variables["params"],
    )
    return Case(config, {**variables, "params": params}, jit(build(config).apply))


@pytest.fixture(scope="module", params=["one_layer", "multi_layer", "dense"])
def case(request) -> Case:
    return make(weights=request.param)


@pytest.fixture(scope="module")
def one_layer() -> Case:
    return make()


def test_logits_equal_the_plain_numpy_model(case):
    found = case.logits(case.variables, SOURCE, TARGET)
    assert found.shape == (2, 5, 13) and found.dtype == jnp.float32
    np.testing.assert_allclose(found, numpy_transformer.logits(case.config, case.variables, SOURCE, TARGET), **CLOSE)


def test_a_joined_vocabulary_has_one_table():
    joined = make(source_vocab=13, shared_embedding=True)
    found = joined.logits(joined.variables, SOURCE, TARGET)
    np.testing.assert_allclose(
        found, numpy_transformer.logits(joined.config, joined.variables, SOURCE, TARGET), **CLOSE
    )


def test_pads_do_not_matter_on_either_side(case):
    sides = {
        "left": (np.array([[1, 1, 4, 5, 6, 2]] * 2), np.array([[2, 5, 6, 7, 8]] * 2)),
        "right": (np.array([[4, 5, 6, 2, 1, 1]] * 2), np.array([[2, 5, 6, 7, 8]] * 2)),
        "both": (np.array([[1, 4, 5, 6, 2, 1]] * 2), np.array([[2, 5, 6, 7, 8]] * 2)),
    }
    found = {name: np.asarray(case.logits(case.variables, *tokens)) for name, tokens in sides.items()}
    np.testing.assert_allclose(found["left"], found["right"], **CLOSE)
    np.testing.assert_allclose(found["both"], found["right"], **CLOSE)
    source = sides["left"][0]
    right, left = (np.array([tokens] * 2) for tokens in ([2, 5, 6, 1, 1], [1, 1, 2, 5, 6]))
    real = np.asarray(case.logits(case.variables, source, right))[:, :3]
    np.testing.assert_allclose(np.asarray(case.logits(case.variables, source, left))[:, 2:], real, **CLOSE)
    np.testing.assert_allclose(found["left"][:, :3], real, **CLOSE)


def test_a_row_of_pads_alone_is_no_nan(case):
    source, target = SOURCE.copy(), TARGET.copy()
    source[1], target[1] = 1, 1
    found = np.asarray(case.logits(case.variables, source, target))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0], case.logits(case.variables, SOURCE, TARGET)[0], **CLOSE)


def test_a_sentence_does_not_see_its_batch(case):
    found = np.asarray(case.logits(case.variables, SOURCE, TARGET))
    swapped = case.logits(case.variables, SOURCE[::-1].copy(), TARGET[::-1].copy())
    np.testing.assert_allclose(swapped[::-1], found, **CLOSE)
    twice = case.logits(case.variables, SOURCE[[0, 0]], TARGET[[0, 0]])
    np.testing.assert_allclose(twice[1], found[0], **CLOSE)


def test_no_logit_depends_on_a_later_token_and_each_on_every_earlier_one():
    """By gradient: tokens differ from position to position, and the logit watched belongs to none of them."""
    model = make()
    made = materialize(model.variables, model.config.supermask)
    watched, target = 12, np.array([[2, 5, 6, 7, 8]])

    def logit(tables):
        return build(model.config).apply(
            {**made, "materialized": {**made["materialized"], **tables}}, SOURCE[1:], target
        )[0, :, watched]

    names = ("source_embedding", "target_embedding")
    jacobian = jit(jax.jacrev(logit))({name: made["materialized"][name] for name in names})
    of_target, of_source = (np.abs(jacobian[name]["kernel"]).sum(axis=-1) for name in reversed(names))
    for t in range(5):
        reached = of_target[t][target[0]] > 0
        np.testing.assert_array_equal(reached, np.arange(5) <= t)
        assert set(np.flatnonzero(of_source[t])) == {9, 10, 3, 2}, "every real token of the source, and no pad"


def test_the_gradient_of_the_scores_is_that_of_the_product_times_weights_and_signs(one_layer):
    config, variables = one_layer.models.config, one_layer.variables
    model, target_out = build(config), np.array([[5, 6, 7, 8, 2], [9, 10, 2, 1, 1]])

    def loss(variables):
        return label_smoothed_nll(model.apply(variables, SOURCE, TARGET), target_out, 0.1)[0]

    made = materialize(variables, config.supermask)
    of_scores = jit(jax.grad(lambda p: loss({**variables, "params": p})))(variables["params"])
    of_products = jit(jax.grad(lambda p: loss({**made, "materialized": p})))(made["materialized"])
    scores, weights = flatten_dict(variables["params"]), flatten_dict(variables["random"])
    products = flatten_dict(of_products)
    for path, found in flatten_dict(of_scores).items():
        kernel = (*path[:-1], "kernel")
        expected = products[kernel] * weights[kernel] * jnp.sign(scores[path])
        np.testing.assert_allclose(found, expected, **CLOSE, err_msg="/".join(path))
        assert (np.asarray(found) != 0).mean() > 0.3


def test_products_made_beforehand_give_the_same_logits(case):
    made = jit(partial(materialize, mask=case.config.supermask))(case.variables)
    np.testing.assert_allclose(
        case.logits(made, SOURCE, TARGET), case.logits(case.variables, SOURCE, TARGET), rtol=1e-6, atol=1e-6
    )
    if case.config.masked:
        assert not jax.tree.leaves(made["random"]) and not jax.tree.leaves(made["params"])


def test_decoding_token_by_token_equals_the_whole(case):
    """Rows of one sentence lie side by side, differ in their tokens, and change places half way."""
    model, config, rng = build(case.config), case.config, np.random.default_rng(0)
    beams, length = 3, 5
    rows = len(SOURCE) * beams
    tokens = rng.integers(4, 13, (rows, length))
    tokens[:, 0] = 2
    variables = case.variables  # with masks made anew in each step, and once with those made beforehand
    if config.weights == "multi_layer":
        variables = jit(partial(materialize, mask=config.supermask))(variables)
    memory = jit(lambda v, s: model.apply(v, s, method="remember", mutable=["memory"])[1])(variables, SOURCE)
    cache = empty_cache(config, rows, length + 2)  # longer than needed: what is not written yet must not be seen

    @jit
    def step(cache, tokens, position):
        state = {**variables, **memory, "cache": cache}
        logits, changed = model.apply(state, tokens, position, SOURCE, method="step", mutable=["cache"])
        return logits, changed["cache"]

    found = []
    for position in range(length):
        if position == 3:  # as a search does: the last row of each sentence replaces its first
            order = np.arange(rows).reshape(-1, beams)
            order[:, 0] = order[:, -1]
            cache = jax.tree.map(lambda leaf, order=order: leaf[order.ravel()], cache)
            tokens[:, :3] = tokens[order.ravel(), :3]
            found = [logits[order.ravel()] for logits in found]
        logits, cache = step(cache, tokens[:, position], jnp.int32(position))
        found.append(logits)
    for beam in range(beams):
        expected = case.logits(case.variables, SOURCE, tokens[beam::beams])
        np.testing.assert_allclose(np.stack(found, axis=1)[beam::beams], expected, **CLOSE)


def test_every_leaf_of_the_cache_and_the_memory_has_the_batch_first_and_the_layer_second(one_layer):
    model, config = build(one_layer.models.config), one_layer.models.config
    memory = jax.eval_shape(lambda: model.apply(one_layer.variables, SOURCE, method="remember", mutable=["memory"])[1])
    assert {leaf.shape for leaf in jax.tree.leaves(memory)} == {(2, 3, 6, 2, 4)}
    assert {leaf.shape for leaf in jax.tree.leaves(empty_cache(config, 4, 9))} == {(4, 3, 9, 2, 4)}


def test_bfloat16_stays_close_and_gives_float32_logits_and_gradients(one_layer):
    config, exact = (
        one_layer.models.config.replace(dtype="bfloat16"),
        one_layer.logits(one_layer.variables, SOURCE, TARGET),
    )
    model = build(config)

    def loss(params):
        logits = model.apply({**one_layer.variables, "params": params}, SOURCE, TARGET)
        return logits[..., 0].sum(), logits

    gradients, logits = jit(jax.grad(loss, has_aux=True))(one_layer.variables["params"])
    assert logits.dtype == jnp.float32
    assert {gradient.dtype for gradient in jax.tree.leaves(gradients)} == {jnp.dtype("float32")}
    assert np.abs(logits - exact).max() < 0.05 * np.std(exact)
    assert {leaf.dtype for leaf in jax.tree.leaves(empty_cache(config, 2, 3))} == {jnp.dtype("bfloat16")}


def test_dropout_is_on_in_training_alone_and_a_function_of_its_key():
    made = make(dropout=0.3, encoder_layers=1, decoder_layers=1)
    evaluated = np.asarray(made.logits(made.variables, SOURCE, TARGET))
    np.testing.assert_allclose(
        evaluated, numpy_transformer.logits(made.config, made.variables, SOURCE, TARGET), **CLOSE
    )
    trained = jit(lambda key: build(made.config).apply(made.variables, SOURCE, TARGET, rngs={"dropout": key}))
    first, again, other = (np.asarray(trained(jax.random.key(seed))) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01 and np.abs(first - evaluated).max() > 0.01


@pytest.mark.parametrize("changes", [{"weights": "dense"}, {"keep": 1.0}], ids=str)
def test_numpy_variables_are_as_good_as_jax_arrays(changes):
    made = make(encoder_layers=1, decoder_layers=1, **changes)
    arrays, model = jax.tree.map(np.asarray, made.variables), build(made.config)
    found = jit(lambda source, target: model.apply(arrays, source, target))(SOURCE, TARGET)
    np.testing.assert_allclose(found, numpy_transformer.logits(made.config, arrays, SOURCE, TARGET), **CLOSE)


def test_a_nan_among_the_scores_reaches_every_logit(one_layer):
    broken = jax.tree.map(jnp.array, one_layer.variables)
    scores = broken["params"]["encoder"]["layers"]["ffn_in"]["scores"]
    broken["params"]["encoder"]["layers"]["ffn_in"]["scores"] = scores.at[1, 2, 3].set(jnp.nan)
    assert np.isnan(one_layer.logits(broken, SOURCE, TARGET)).all()
