"""Label-smoothed cross entropy equals its definition in float64, and pads weigh nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.tasks.losses import Distil, label_smoothed_nll

loss = jax.jit(label_smoothed_nll, static_argnums=2)
BATCH, LENGTH, VOCAB = 3, 4, 7


def by_definition(logits: np.ndarray, target: np.ndarray, smoothing: float) -> tuple[float, float, int]:
    """The sums of golden/README.md, a token at a time."""
    total = nll = 0.0
    real = 0
    for row, wanted in zip(logits.astype(np.float64).reshape(-1, VOCAB), target.ravel(), strict=True):
        if wanted == 1:
            continue
        minus_log_p = np.log(np.sum(np.exp(row - row.max()))) + row.max() - row
        total += (1 - smoothing) * minus_log_p[wanted] + smoothing / VOCAB * minus_log_p.sum()
        nll += minus_log_p[wanted]
        real += 1
    return total, nll, real


def example(seed: int, size: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((BATCH, LENGTH, VOCAB)) * size).astype(np.float32)
    return logits, rng.integers(0, VOCAB, (BATCH, LENGTH)).astype(np.int32)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1), smoothing=st.sampled_from([0.0, 0.1, 0.5]), size=st.sampled_from([0.0, 1.0, 50.0])
)
def test_equals_the_definition(seed, smoothing, size):
    logits, target = example(seed, size)
    found = loss(logits, target, smoothing)
    np.testing.assert_allclose(found, by_definition(logits, target, smoothing), rtol=2e-5, atol=2e-5)


def test_an_addition_to_all_logits_changes_nothing_even_far_out():
    logits, target = example(0)
    near, far = loss(logits, target, 0.1), loss(logits + np.float32(1e4), target, 0.1)
    np.testing.assert_allclose(far, near, rtol=1e-3)
    assert np.isfinite(loss(logits * np.float32(1e30), target, 0.1)[0])


def test_bfloat16_logits_are_summed_in_float32():
    logits, target = example(0)
    rounded = jnp.asarray(logits, jnp.bfloat16)
    found = loss(rounded, target, 0.1)
    assert all(value.dtype == jnp.float32 for value in found)
    exact = by_definition(np.asarray(rounded.astype(jnp.float32)), target, 0.1)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_logit_that_is_no_number_shows_in_the_loss(bad):
    logits, target = example(0)
    target[0, 0] = 3
    logits[0, 0, 5] = bad
    assert not np.isfinite(loss(logits, target, 0.1)[0])


def of_a_teacher(seed: int, k: int = VOCAB) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A teacher's logits, the ids of the k largest of each target, and their probabilities."""
    logits, _ = example(seed)
    ids = np.argsort(-logits, axis=-1)[..., :k]
    p = np.asarray(jax.nn.softmax(logits))
    return logits, ids, np.take_along_axis(p, ids, axis=-1)


@pytest.mark.parametrize("k", [VOCAB, 2])
def test_a_teachers_share_equals_the_definition(k):
    logits, _ = example(0)
    _, ids, p = of_a_teacher(1, k)
    found = jax.jit(Distil(0.25).mixed)(jnp.float32(8.0), logits, ids, p)
    cross = 0.0
    for row, its_ids, its_p in zip(
        logits.astype(np.float64).reshape(-1, VOCAB), ids.reshape(-1, k), p.reshape(-1, k), strict=True
    ):
        log_p = row - np.log(np.sum(np.exp(row)))
        left_out = np.delete(np.exp(log_p), its_ids)
        cross -= np.dot(its_p, log_p[its_ids]) + (1 - its_p.sum()) * np.log(left_out.sum() or 1)
    np.testing.assert_allclose(found, 0.75 * 8.0 + 0.25 * cross, rtol=1e-5)


def test_without_a_share_the_teacher_changes_no_bit():
    logits, _ = example(0)
    _, ids, p = of_a_teacher(1)
    alone = loss(*example(0), 0.1)[0]
    assert Distil(0.0).mixed(alone, jnp.asarray(logits), ids, p) == alone


def test_a_teacher_that_is_sure_of_the_label_gives_the_loss_without_smoothing():
    logits, target = example(0)
    target[1, 2:] = 1
    sure = (target != 1).astype(np.float32)[..., None]
    found = Distil(1.0).mixed(loss(logits, target, 0.1)[0], jnp.asarray(logits), target[..., None], sure)
    np.testing.assert_allclose(found, loss(logits, target, 0.0)[0], rtol=1e-6)


@pytest.mark.parametrize("k", [VOCAB, 2])
def test_a_student_like_its_teacher_has_no_gradient_and_another_one_has(k):
    teacher, ids, p = of_a_teacher(1, k)
    gradient = jax.jit(jax.grad(lambda logits: Distil(1.0).mixed(jnp.float32(0), logits, ids, p)))
    np.testing.assert_allclose(gradient(teacher), 0.0, atol=1e-6)
    assert np.abs(gradient(example(0)[0])).max() > 0.1
