"""The selection keeps exactly k, the lower index wins a tie, nothing sorts, and the gradient passes straight through."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from one_layer.supermask import kept_count, topk_mask, unpack
from tests import golden, user_error
from tests.adversaries import adversaries
from tests.compiling import equations

SHAPES = [(), (7,), (6, 10), (3, 4, 5), (2, 3, 2, 5)]
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

# One compilation for each shape and dtype serves every ratio, since `keep` is traced.
traced = jax.jit(topk_mask, static_argnames="by")
apply = jax.jit(lambda mask, scores: mask(scores), static_argnums=0)
quick = settings(max_examples=120, deadline=None, derandomize=True)
ranked = st.sampled_from(["magnitude", "score"])
ratios = st.integers(1, 10**6).map(lambda millionths: millionths / 10**6)


def select(scores, keep: float, by: str = "magnitude") -> np.ndarray:
    return np.asarray(traced(scores, jnp.float32(keep), by=by))


def stable_sort(scores, keep: float, by: str = "magnitude") -> np.ndarray:
    """The mask by a full stable sort in float64, which holds every float32 and bfloat16 exactly."""
    values = np.asarray(scores).astype(np.float64).ravel()
    rank = np.abs(values) if by == "magnitude" else values
    mask = np.zeros(rank.size)
    mask[np.argsort(-rank, kind="stable")[: rank.size - int((1 - keep) * rank.size)]] = 1.0
    return mask.reshape(np.shape(scores))


@pytest.mark.parametrize("layers", [(), (1,), (3,)])
def test_packed_masks_are_unpacked_layer_by_layer(layers):
    masks = np.random.default_rng(0).random((*layers, 5, 7)) < 0.5
    bits = np.packbits(masks.reshape(*layers, 35), axis=-1, bitorder="little")
    np.testing.assert_array_equal(unpack(bits, (5, 7)), masks.astype(np.float32))


def drawn(numbers):
    return st.sampled_from(SHAPES).flatmap(lambda shape: arrays(np.float32, shape, elements=numbers))


@quick
@given(drawn(st.integers(-2, 2)) | drawn(st.floats(width=32, allow_nan=False)), ratios, ranked)
def test_any_floats_and_massive_ties_as_a_stable_sort_does(scores, keep, by):
    mask = select(scores, keep, by)
    assert mask.sum() == scores.size - int((1 - keep) * scores.size)
    np.testing.assert_array_equal(mask, stable_sort(scores, keep, by))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("dtype", "by"), [(jnp.float32, "magnitude"), (jnp.bfloat16, "magnitude"), (jnp.float32, "score")]
)
def test_adversarial_distributions_as_a_stable_sort_does(dtype, by, seed):
    size = 1000
    for name, scores in adversaries(size, seed).items():
        scores = jnp.asarray(scores, dtype)
        for keep in (*RATIOS, 0.001, 0.999, 0.123457):
            mask = select(scores, keep, by)
            assert mask.dtype == dtype
            np.testing.assert_array_equal(mask, stable_sort(scores, keep, by), err_msg=f"{name}, keep {keep}")


@quick
@given(keep=ratios, size=st.integers(1, 2**26))
def test_the_count_is_python_s_own_in_double_precision(keep, size):
    assert kept_count(size, keep) == size - int((1 - keep) * size)
    assert kept_count(size, np.asarray(keep, np.float32)) == kept_count(size, keep)
    assert kept_count(size, 1e-20) == 1, "one at least, though 1 - 1e-20 is 1"


def test_a_traced_keep_means_the_same_decimal_as_a_number():
    rng = np.random.default_rng(0)
    keeps = np.r_[1, 2, 999_999, 10**6, np.arange(1, 100) * 10_000, rng.integers(1, 10**6, 3000)] / 1e6
    for size in (10, 1000, 16 * 23, 10_152 * 512, 41_000 * 1024):
        mapped = jax.vmap(lambda keep, size=size: kept_count(size, keep))
        expected = [size - int((1 - keep) * size) for keep in keeps.tolist()]
        np.testing.assert_array_equal(jax.jit(mapped)(keeps.astype(np.float32)), expected)
        np.testing.assert_array_equal(mapped(keeps.astype(np.float32)), expected)  # operation by operation


@pytest.mark.parametrize("keep", [0.1234567, 0.7654321, 0.9999994])
def test_a_keep_in_single_precision_means_its_six_decimals(keep):
    size, single = 2**26, np.float32(keep)
    expected = kept_count(size, round(keep, 6))
    assert kept_count(size, np.asarray(single)) == jax.jit(lambda keep: kept_count(size, keep))(single) == expected
    assert expected != kept_count(size, keep)


def test_static_and_traced_keep_agree_and_so_does_every_transformation():
    rng = np.random.default_rng(0)
    scores = jnp.asarray(rng.integers(-4, 5, (3, 6, 10)), jnp.float32)
    keeps = jnp.asarray([0.1, 0.5, 0.9], jnp.float32)
    expected = np.stack([stable_sort(s, k) for s, k in zip(scores, (0.1, 0.5, 0.9), strict=True)])

    static = [topk_mask(s, k) for s, k in zip(scores, (0.1, 0.5, 0.9), strict=True)]
    mapped = jax.jit(jax.vmap(topk_mask))(scores, keeps)
    scanned = jax.jit(lambda *xs: jax.lax.scan(lambda c, x: (c, topk_mask(*x)), 0, xs)[1])(scores, keeps)
    for found in (np.stack(static), mapped, scanned):
        np.testing.assert_array_equal(found, expected)

    shared_keep = jax.jit(jax.vmap(lambda s: topk_mask(s, 0.5)))(scores)
    np.testing.assert_array_equal(shared_keep, np.stack([stable_sort(s, 0.5) for s in scores]))
    scores_shared = jax.jit(jax.vmap(topk_mask, (None, 0)))(scores[0], keeps)
    np.testing.assert_array_equal(scores_shared, np.stack([stable_sort(scores[0], k) for k in (0.1, 0.5, 0.9)]))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_gradient_passes_straight_through_to_the_magnitudes(dtype):
    rng = np.random.default_rng(0)
    scores = jnp.asarray(rng.standard_normal((6, 10)), dtype).at[0, :3].set(0.0).at[0, 1].set(-0.0)
    upstream = jnp.asarray(rng.standard_normal((6, 10)), dtype)

    def total(scores, keep):
        return jnp.sum(topk_mask(scores, keep) * upstream)

    gradients = [jax.grad(total)(scores, 0.3), jax.jit(jax.grad(total))(scores, jnp.float32(0.3))]
    for gradient in gradients:
        assert gradient.dtype == dtype
        np.testing.assert_array_equal(gradient, upstream * jnp.sign(scores))
    assert not gradients[0][0, :3].any()


def test_the_gradient_of_each_layer_under_scan_and_vmap_is_its_own():
    rng = np.random.default_rng(0)
    scores = jnp.asarray(rng.standard_normal((3, 6, 10)), jnp.float32)
    weights = jnp.asarray(rng.standard_normal((6, 10)), jnp.float32)
    x = jnp.asarray(rng.standard_normal((3, 10)), jnp.float32)

    def scanned(scores):
        def layer(total, item):
            return total + ((weights * topk_mask(item[0], 0.5)) @ item[1]).sum(), None

        return jax.lax.scan(layer, 0.0, (scores, x))[0]

    def mapped(scores):
        return jax.vmap(lambda s, x: (weights * topk_mask(s, 0.5)) @ x)(scores, x).sum()

    expected = x[:, None, :] * weights * jnp.sign(scores)
    for function in (scanned, mapped):
        np.testing.assert_allclose(jax.jit(jax.grad(function))(scores), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_nan_among_the_scores_makes_the_whole_mask_nan(dtype):
    """Also the one whose bits are next to those of infinity, which bfloat16 does not hold."""
    beside = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
    nans = [jnp.nan, -jnp.nan, *(beside if dtype == jnp.float32 else ())]
    scores = np.arange(60, dtype=np.float32).reshape(6, 10)
    for index, nan, by in itertools.product([(0, 0), (3, 4), (5, 9)], nans, ["magnitude", "score"]):
        broken = scores.copy()
        broken[index] = nan
        assert np.isnan(select(jnp.asarray(broken, dtype), 0.5, by).astype(np.float32)).all()
    assert np.isnan(np.asarray(topk_mask(jnp.asarray(broken, dtype), 0.5), np.float32)).all()


@pytest.mark.parametrize("keep", [0, 0.0, -0.1, 1.5, 1.000001, float("nan"), float("inf"), 2])
def test_a_keep_outside_its_range_is_refused_and_a_traced_one_poisons(keep):
    scores = np.arange(60, dtype=np.float32).reshape(6, 10)
    with user_error(rf"keep is {keep}.*\(0, 1\]"):
        topk_mask(scores, keep)
    with user_error("keep"):
        topk_mask(scores, jnp.float32(keep))
    assert np.isnan(select(scores, keep)).all()


@pytest.mark.parametrize("by", ["absolute", "threshold", ""])
def test_ranking_by_anything_else_is_refused(by):
    with user_error(f"ranked by {by!r}; give magnitude or score"):
        topk_mask(np.ones(3, np.float32), 0.5, by=by)


def test_nothing_sorts():
    scores = jnp.ones((6, 10))
    programs = [
        jax.make_jaxpr(topk_mask)(scores, 0.5),
        jax.make_jaxpr(lambda s: topk_mask(s, 0.5))(scores),
        jax.make_jaxpr(jax.grad(lambda s: topk_mask(s, 0.5).sum()))(scores),
        jax.make_jaxpr(jax.vmap(lambda s: topk_mask(s, 0.5)))(scores[None]),
    ]
    for program in programs:
        names = {each.primitive.name for each, _ in equations(program.jaxpr)}
        assert "while" in names, "the walk did not reach the search"
        assert not [name for name in names if "sort" in name or "top_k" in name]


def test_the_golden_masks_bit_for_bit(shared):
    arrays = golden.read(shared / "golden" / "masks.npz")
    ranked_by = {"super_mask": "magnitude", "topk": "score"}
    names = [name for name in arrays if name.split("/")[-1] in ranked_by]
    assert len(names) >= 120
    for name in names:
        shape, ratio, kind = name.split("/")
        scores, keep = arrays[f"{shape}/scores"], float(ratio.removeprefix("k"))
        assert kept_count(scores.size, keep) == arrays[f"{shape}/{ratio}/kept"]
        np.testing.assert_array_equal(select(scores, keep, ranked_by[kind]), arrays[name], err_msg=name)


def test_the_golden_straight_through_gradient(shared):
    arrays = golden.read(shared / "golden" / "masks.npz")
    gradient = jax.grad(lambda s: jnp.sum(topk_mask(s, 0.5) * arrays["ste/upstream"]))(arrays["ste/scores"])
    np.testing.assert_array_equal(gradient, arrays["ste/grad_scores"])
