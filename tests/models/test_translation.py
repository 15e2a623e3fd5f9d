"""The whole model: its numbers, what it may look at, decoding token by token, and what is trained, random or neither."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.layers.attention import BLOCK
from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, build, initialize
from one_layer.models.decoding import Cache, Decoder, reorder
from one_layer.tasks.losses import label_smoothed_nll
from tests import mostly_slow, numpy_transformer
from tests.compiling import jit
from tests.models.test_behaviours import CLOSE, SOURCE, TARGET, TINY, packed
from tests.tiny_tickets import shaken


@dataclass(frozen=True)
class Case:
    """A model, its variables, and its compiled forward pass."""

    config: ModelConfig
    variables: dict[str, Any]
    logits: Any


def make(**changes: Any) -> Case:
    config = TINY.replace(embedding=None, norm=None, bias=None, **changes)
    return Case(config, shaken(initialize(config, 7)), jit(build(config).apply))


@pytest.fixture(scope="module", params=mostly_slow(["one_layer", "multi_layer", "dense"], ["one_layer", "dense"]))
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


@pytest.mark.slow
def test_the_gradient_of_the_scores_is_that_of_the_product_times_weights_and_signs(one_layer):
    config, variables = one_layer.config, one_layer.variables
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


def token_by_token(config: ModelConfig, variables: dict[str, Any], length: int, beams: int) -> tuple[Any, Any]:
    """Logits of random tokens of every beam, [rows, length, vocab], and the tokens; beams take each other's places on the way."""
    rng, rows = np.random.default_rng(0), len(SOURCE) * beams
    tokens = rng.integers(4, 13, (rows, length))
    tokens[:, 0] = 2
    # A decoder is made once and lives in one program with its steps: here as many programs as there are steps.
    step = jit(lambda cache, *rest: Decoder(config, variables, SOURCE).step(*rest, cache))
    cache = jax.eval_shape(lambda: Decoder(config, variables, SOURCE).start(beams, length + 2))

    def unwritten(path: tuple[Any, ...], x: Any) -> jax.Array:
        """Keys and values that nobody wrote must not be seen; a state is one that somebody wrote."""
        return jnp.full(x.shape, 0.0 if path[-1].key == "state" else 9.0, x.dtype)

    cache = Cache(jax.tree_util.tree_map_with_path(unwritten, cache.layers), jnp.full(cache.ancestors.shape, -1))
    found: list[Any] = []
    for position in range(length):
        if position % 3 == 2:  # as a search does: beams change places, and one of them ends
            parents = np.tile(np.roll(np.arange(beams), 1), (len(SOURCE), 1))
            parents[:, -1] = parents[:, 0]
            cache = reorder(cache, jnp.asarray(parents))
            order = (parents + beams * np.arange(len(SOURCE))[:, None]).ravel()
            tokens[:, :position] = tokens[order, :position]
            found = [logits[order] for logits in found]
        logits, cache = step(cache, tokens[:, position], jnp.int32(position))
        found.append(logits)
    return np.stack(found, axis=1), tokens


@pytest.mark.parametrize("length", [5, pytest.param(2 * BLOCK + 1, marks=pytest.mark.slow)])
def test_decoding_token_by_token_equals_the_whole(case, length):
    """Also over more than one block of the cache; with masks multiplied out, and with bits unpacked at every use."""
    masked = case.config.masked
    made = jit(partial(materialize, mask=case.config.supermask))(case.variables)
    for variables in [made, packed(case.config, case.variables)] if masked else [case.variables]:
        found, tokens = token_by_token(case.config, variables, length, beams=3)
        for beam in range(3):
            expected = case.logits(case.variables, SOURCE, tokens[beam::3])
            np.testing.assert_allclose(found[beam::3], expected, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"init_preset": "reference"},
        {"weights": "multi_layer", "sharing": "masks"},
        {"weights": "dense", "share_norm_scale": True},
    ],
    ids=str,
)
def test_layers_that_share_and_have_nothing_trained_left_can_be_decoded(changes):
    """Once the masks are multiplied out there is nothing among the parameters of the decoder."""
    case = make(**changes)
    made = jit(partial(materialize, mask=case.config.supermask))(case.variables)
    for variables in (made, packed(case.config, case.variables)) if case.config.masked else (made,):
        found, tokens = token_by_token(case.config, variables, 4, beams=2)
        np.testing.assert_allclose(found[::2], case.logits(case.variables, SOURCE, tokens[::2]), **CLOSE)


@pytest.mark.slow
def test_decoding_in_bfloat16_stays_as_close_to_the_whole_as_rounding_lets_it(one_layer):
    config = one_layer.config.replace(dtype="bfloat16")
    variables = jit(partial(materialize, mask=config.supermask))(one_layer.variables)
    found, tokens = token_by_token(config, variables, 10, beams=2)
    assert found.dtype == np.float32
    expected = np.asarray(one_layer.logits(variables, SOURCE, tokens[::2]))
    assert np.abs(found[::2] - expected).max() < 0.05 * np.std(expected)


def test_a_nan_among_the_scores_reaches_every_logit(one_layer):
    broken = jax.tree.map(jnp.array, one_layer.variables)
    scores = broken["params"]["encoder"]["layers"]["ffn_in"]["scores"]
    broken["params"]["encoder"]["layers"]["ffn_in"]["scores"] = scores.at[1, 2, 3].set(jnp.nan)
    assert np.isnan(one_layer.logits(broken, SOURCE, TARGET)).all()
