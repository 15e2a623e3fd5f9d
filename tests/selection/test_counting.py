"""The search for the k largest: how often it looks at the scores, how it counts, and the bound that it begins with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.selection import counting
from tests.adversaries import adversaries

INFINITY = 0x7F800000


@pytest.fixture(scope="module", params=["magnitude", "score"])
def passes(request):
    """Counts the passes over some matrices of scores, in the search for the k-th largest of each."""

    @jax.jit
    def count(k, *scores):
        loop, counts = jax.lax.while_loop, []

        def counted(cond, body, start):
            state, number = loop(lambda s: cond(s[0]), lambda s: (body(s[0]), s[1] + 1), (start, jnp.int32(0)))
            counts.append(number)
            return state

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax.lax, "while_loop", counted)
            counting.largest_of_each(request.param, [each[None] for each in scores], k)
        return counts[0]

    def of(keep, *scores):
        return int(count([int(keep * each.size) for each in scores], *(each.astype(np.float32) for each in scores)))

    return of


@pytest.mark.parametrize(("draw", "most"), [("normal", 8), ("uniform", 5)])
def test_interpolation_finds_the_threshold_of_usual_scores_in_few_passes(passes, draw, most):
    """On average; bisection of the bits takes up to 31."""
    dice = np.random.default_rng(0)
    scores = [dice.normal(size=999) if draw == "normal" else dice.uniform(-1, 1, 999) for _ in range(20)]
    assert np.mean([passes(keep, each) for each in scores for keep in (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 0.98)]) < most


def test_bisection_ends_the_search_where_interpolation_does_not(passes):
    for name, scores in adversaries(999, 0).items():
        assert max(passes(keep, scores) for keep in (0.002, 0.01, 0.3, 0.5, 0.99)) <= 32 + 32, name


def test_matrices_that_are_searched_at_once_take_as_many_passes_as_the_slowest_of_them(passes):
    dice = np.random.default_rng(1)
    scores = dice.normal(size=999), dice.normal(size=(40, 30)) ** 9, dice.uniform(-1, 1, (3, 70))
    alone = [passes(0.3, each) for each in scores]
    # A program of its own may round an interpolation otherwise, and so take a pass more.
    assert max(alone) - 2 <= passes(0.3, *scores) <= max(alone) + 2 < sum(alone)


@pytest.mark.parametrize("shape", [(), (63,), (64,), (20_000,), (64, 200), (201, 5), (2, 65, 4), (2, 2, 128, 3)])
def test_counting_in_blocks_of_rows_counts_everything(shape):
    some = np.random.default_rng(0).random(shape) < 0.7
    for chosen in (some, np.ones(shape, bool), np.zeros(shape, bool)):
        assert counting.count(jnp.asarray(chosen)) == np.count_nonzero(chosen)


bound = jax.jit(lambda scores: counting._bound(counting._keys(scores, "magnitude")))


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_that_of_the_largest_magnitude_up_to_a_few_neighbours(seed):
    for name, scores in adversaries(999, seed).items():
        largest = int(np.abs(scores).view(np.int32).max())
        assert largest <= int(bound(scores)) <= min(largest + 256, INFINITY), name


@pytest.mark.parametrize("bits", [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF])
def test_the_bound_is_above_infinity_for_a_nan_and_only_then(bits):
    scores = np.array([1.0, np.inf, -np.inf, 0.0], np.float32)
    assert int(bound(scores)) == INFINITY
    scores.view(np.uint32)[3] = bits
    assert int(bound(scores)) > INFINITY
