"""Selections beside the exact top-k: thresholds, masks with a sign, and dynamic scaling."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer import supermask
from one_layer.supermask import SELECTIONS, Supermask
from tests import user_error
from tests.test_supermask import apply, quick, stable_sort


@quick
@given(seed=st.integers(0, 2**32 - 1), threshold=st.sampled_from([-0.5, 0.0, 0.5, 1e9]))
def test_a_threshold_keeps_what_exceeds_it_and_never_less_than_half_a_percent(seed, threshold):
    """Thousands of entries, so that half a percent is more than the one that is always kept; integers, so that some tie.

    At 0 scores, and at 0.5 their sigmoids, equal the threshold, and do not exceed it.
    """
    scores = np.random.default_rng(seed).integers(-9, 10, (40, 50)).astype(np.float32) / 5
    for selection, values in (
        ("threshold", scores),
        ("sigmoid_threshold", 1 / (1 + np.exp(-scores.astype(np.float64)))),
    ):
        mask = np.asarray(apply(Supermask(selection=selection, threshold=threshold), scores))
        passed = values > threshold
        if passed.sum() >= 11:
            np.testing.assert_array_equal(mask, passed)
        else:
            np.testing.assert_array_equal(mask, stable_sort(scores, 11 / scores.size, "score"))
            assert mask.sum() == 11


@quick
@given(seed=st.integers(0, 2**32 - 1), threshold=st.sampled_from([0.0, 0.4, 1.1]))
def test_a_signed_mask_is_the_sign_of_what_exceeds_the_threshold(seed, threshold):
    scores = np.random.default_rng(seed).standard_normal((6, 10)).astype(np.float32)
    scores[0, :3] = 0.0, -0.0, threshold  # which do not exceed it
    mask = np.asarray(apply(Supermask(selection="signed_threshold", threshold=threshold), scores))
    np.testing.assert_array_equal(mask, np.where(np.abs(scores) > np.float32(threshold), np.sign(scores), 0))


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_a_mask_of_signs_drops_nothing(seed):
    scores = np.random.default_rng(seed).integers(-2, 3, (6, 10)).astype(np.float32)
    mask = np.asarray(apply(Supermask(1.0, "sign"), scores))
    np.testing.assert_array_equal(mask, np.where(scores < 0, -1, 1))


@quick
@given(seed=st.integers(0, 2**32 - 1), temperature=st.sampled_from([1e-30, 0.1, 3.0]))
def test_soft_signs_lie_between_the_signs_which_a_low_temperature_gives_them_and_evaluations_see(seed, temperature):
    """At 0, soft signs are 0, at each temperature. The gradient passes straight through, and a NaN makes the whole mask NaN."""
    scores, upstream = np.random.default_rng(seed).standard_normal((2, 6, 10)).astype(np.float32)
    scores[0, :2] = 0.0, -0.0
    soft = Supermask(1.0, "sign", temperature=temperature)
    mask, pull_back = jax.vjp(soft, scores)
    np.testing.assert_allclose(mask, np.tanh(scores.astype(np.float64) / temperature), rtol=1e-5)
    np.testing.assert_array_equal(pull_back(jnp.asarray(upstream))[0], upstream)
    np.testing.assert_array_equal(soft.select(scores), np.where(scores < 0, -1, 1))
    scores[2, 3] = np.nan
    assert np.isnan(soft(scores)).all()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_selection_passes_the_gradient_straight_through_and_a_nan_on(selection):
    scores, upstream = np.random.default_rng(0).standard_normal((2, 6, 10)).astype(np.float32)
    mask = Supermask(selection=selection, threshold=0.4)
    assert Supermask(1.0, selection).keeps_all == mask.exact and not Supermask(0.999, selection).keeps_all
    gradient = jax.grad(lambda s: jnp.sum(mask(s) * upstream))(scores)
    np.testing.assert_array_equal(gradient, upstream * (np.sign(scores) if selection == "magnitude" else 1))
    scores[2, 3] = np.nan
    assert np.isnan(np.asarray(mask(scores))[2, 3])


@pytest.mark.parametrize("axis", [0, 1])
def test_dynamic_scaling_gives_each_line_the_power_that_it_lost(axis):
    """And a line that keeps nothing nothing; the gradient is that of the whole expression, by central differences."""
    scores, upstream = np.random.default_rng(3).standard_normal((2, 6, 10)).astype(np.float32)
    scores[2 if axis else slice(None), slice(None) if axis else 2] = 0.0
    mask = np.asarray(Supermask(0.4, dynamic_scale=True)(scores, axis))
    kept = stable_sort(scores, 0.4)
    np.testing.assert_array_equal(mask > 0, kept > 0)
    power, alive = (mask**2).sum(axis=axis), kept.sum(axis=axis) > 0
    np.testing.assert_allclose(power[alive], mask.shape[axis], rtol=1e-6)
    assert (~alive).sum() == 1 and not power[~alive].any()

    def total(mask):  # of the relaxed mask, whose derivative passes to the magnitudes
        lines = mask.sum(axis=axis, keepdims=True)
        return (upstream * mask * np.sqrt(mask.shape[axis] / np.where(lines > 0, lines, np.inf))).sum()

    gradient = jax.grad(lambda s: jnp.sum(Supermask(0.4, dynamic_scale=True)(s, axis) * upstream))(scores)
    for place in [(0, 0), (1, 4), (5, 9), (3, 3)]:
        step = np.zeros_like(kept)
        step[place] = 1e-5
        slope = (total(kept + step) - total(kept - step)) / 2e-5
        np.testing.assert_allclose(gradient[place], slope * np.sign(scores[place]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scaling_is_by_the_number_kept_down_to_one_and_a_line_that_keeps_nothing_passes_no_gradient_on(axis):
    mask = jnp.zeros((4, 9)).at[:, 0].set(1.0).at[2, 1].set(1.0)
    if axis == 0:
        mask = mask.T
    kept = np.array([1, 1, 2, 1])
    scaled = mask * np.sqrt(9 / (kept[None] if axis == 0 else kept[:, None]))
    np.testing.assert_allclose(supermask.rescaled(mask, axis), scaled, rtol=1e-6)
    lines = mask.at[(slice(None), 2) if axis == 0 else 2].set(0.0)
    gradient = jax.grad(lambda mask: jnp.sum(supermask.rescaled(mask, axis)))(lines)
    assert not np.asarray(gradient)[(slice(None), 2) if axis == 0 else 2].any() and np.any(gradient != 0)


class Smallest(Supermask):
    exact = True  # of a selection of one's own, `keep` may decide how many weights survive

    def select(self, scores):
        return Supermask(self.keep, "score").select(-scores)


@pytest.mark.parametrize("kind", [*SELECTIONS, Smallest])
def test_matrices_that_are_selected_at_once_are_those_that_are_selected_alone(kind):
    """As on a GPU. One of them has a NaN; and a traced `keep` that is impossible breaks all."""
    mask = Supermask(0.4, kind) if isinstance(kind, str) else kind(0.4, "a:Class")
    groups = [jax.random.normal(jax.random.key(seed), shape) for seed, shape in enumerate([(2, 6, 8), (3, 4, 5)])]
    groups[0] = groups[0].at[1, 2, 3].set(jnp.nan)
    for group, found in zip(groups, mask.select_each(groups), strict=True):
        np.testing.assert_array_equal(found, [mask.select(each) for each in group])
    broken = jax.jit(lambda keep: Supermask(keep).select_each(groups))(1.5)
    assert all((np.asarray(each) == supermask.BROKEN).all() for each in broken)


def test_a_name_that_is_no_selection_selects_nothing():
    with user_error("the selection 'largest' is unknown; give one of magnitude, score, threshold"):
        Supermask(selection="largest").select(np.ones((2, 3), np.float32))


def test_the_page_knows_every_selection():
    config = (Path(supermask.__file__).parent / "page" / "engine" / "config.js").read_text("utf-8")
    listed = re.search(r"^ *selection: (\[.*\]),$", config, re.MULTILINE)
    assert listed and tuple(json.loads(listed[1])) == SELECTIONS
