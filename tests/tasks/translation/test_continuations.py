"""The best continuations are those of a sort of all, also where only blocks of a large vocabulary are looked at."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.data.special_tokens import EOS, PAD
from one_layer.tasks.translation.continuations import _BLOCK, _LARGE, Allowed, best_continuations

BEAM = 3
SMALL, LARGE = 40, _LARGE + _BLOCK + 5  # the last block of the large one is shorter


@jax.jit
def found_by(scores, logits, step, at_limit):
    return best_continuations(scores, logits, Allowed(step, at_limit))


def of_all(scores, logits, step, at_limit):
    """The places of the best continuations, by a stable sort of all of them, and their totals."""
    with np.errstate(invalid="ignore"):
        log_p = np.array(jax.nn.log_softmax(logits))
    token = np.arange(logits.shape[2])
    log_p[:, :, (token == PAD) | ((token == EOS) & (step == 0))] = -np.inf
    log_p[at_limit] = np.where(token == EOS, log_p[at_limit], -np.inf)
    totals = (scores[:, :, None] + np.where(np.isnan(log_p), -np.inf, log_p)).reshape(len(logits), -1)
    places = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * BEAM]
    return places, np.take_along_axis(totals, places, axis=1)


@pytest.mark.parametrize("vocab", [SMALL, LARGE])
@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize("values", [2, 40, "few large", None])
def test_they_are_the_first_of_a_stable_sort(vocab, step, values):
    """With few values of logits, most continuations are ties; with few large ones, they are ties of unlike blocks."""
    random, shape = np.random.default_rng(vocab + step), (4, BEAM, vocab)
    drawn = {None: lambda: random.standard_normal(shape) * 3, "few large": lambda: random.geometric(0.5, shape)}
    logits = drawn.get(values, lambda: random.integers(0, values, shape))().astype(np.float32)
    logits[1, :, -2:] += 30  # the largest are in the last block, which is shorter
    logits[0, :, PAD] = 60
    logits[2, 1, 7] = np.inf
    scores = np.where(step == 0, [0, -np.inf, -np.inf], -random.integers(0, 3, (4, BEAM))).astype(np.float32)
    at_limit = np.arange(4) == 3
    found, not_finite = found_by(scores, logits, step, at_limit)
    places, totals = of_all(scores, jnp.asarray(logits), step, at_limit)
    counts = totals > -np.inf  # no two programs need agree on what is impossible
    np.testing.assert_allclose(found.scores, totals, rtol=2e-6)
    assert (np.where(counts, found.parents * vocab + found.tokens, 0) == np.where(counts, places, 0)).all()
    assert (found.tokens < vocab).all() and (found.parents < BEAM).all()
    assert np.argwhere(not_finite).tolist() == [[2, 1]]
