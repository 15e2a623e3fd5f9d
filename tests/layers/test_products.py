"""Products with bfloat16 factors and float32 sums, forward and backward."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.products import by_class, product, read_by_several, shared_out

# Every form that a model uses, with the shapes of its arrays.
FORMS = {
    "...i,io->...o": ((2, 3, 300), (300, 5)),
    "bqhd,bkhd->bhqk": ((2, 3, 2, 300), (2, 4, 2, 300)),
    "bhqk,bkhd->bqhd": ((2, 2, 3, 300), (2, 300, 2, 5)),
    "...i,gij->...gj": ((3, 300), (3, 300, 4)),
    "...khc,...hk->...hc": ((2, 3, 300, 2, 4), (2, 3, 2, 300)),
    "...khc,hk->...hc": ((2, 3, 300, 2, 4), (2, 300)),
    "bld,vd->blv": ((2, 3, 300), (7, 300)),
}


def whole_numbers(form):
    """Arrays of whole numbers, which bfloat16 holds exactly, and whose sums it cannot hold."""
    random = np.random.default_rng(0)
    return [jnp.asarray(random.integers(1, 16, shape), jnp.float32) for shape in FORMS[form]]


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_bfloat16_products_are_not_rounded_to_bfloat16(form):
    x, y = whole_numbers(form)
    exact = jnp.einsum(form, x, y, precision="highest")
    assert np.any(exact != exact.astype(jnp.bfloat16).astype(jnp.float32)), "bfloat16 could hold these sums"
    found = product(form, x, y, "bfloat16")
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_the_float32_product_in_the_type_of_each_array(form):
    x, y = whole_numbers(form)
    found, pull_back = jax.vjp(lambda *arrays: product(form, *arrays, "bfloat16"), x, y.astype(jnp.bfloat16))
    _, expected = jax.vjp(lambda *arrays: jnp.einsum(form, *arrays, precision="highest"), x, y)
    upstream = jnp.asarray(np.random.default_rng(1).integers(1, 16, found.shape), jnp.float32)
    (of_x, of_y), (true_x, true_y) = pull_back(upstream), expected(upstream)
    assert (of_x.dtype, of_y.dtype) == (jnp.float32, jnp.bfloat16)
    np.testing.assert_array_equal(of_x, true_x)
    np.testing.assert_array_equal(of_y, true_y.astype(jnp.bfloat16))


@pytest.mark.parametrize("form", FORMS)
def test_float32_products_are_plain(form):
    """Not a bit of a float32 model may change: the same operations, forward and backward."""
    x, y = (jnp.sin(array) for array in whole_numbers(form))

    def operations(function):
        return str(jax.make_jaxpr(lambda *arrays: jax.vjp(function, *arrays)[1](function(*arrays)))(x, y))

    plain = operations(lambda x, y: jnp.einsum(form, x, y, preferred_element_type=jnp.float32))
    assert operations(lambda x, y: product(form, x, y, "float32")) == plain


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_nothing_is_broadcast(dtype):
    """The gradient of a broadcast array would need a sum over the axes that it lacks."""
    with pytest.raises(AssertionError, match=r"\(2, 3, 300, 2, 4\) and \(2, 300\) differ in their first axes"):
        product("...khc,...hk->...hc", jnp.ones((2, 3, 300, 2, 4)), jnp.ones((2, 300)), dtype)


def test_the_backend_computes_attention_and_its_gradients():
    """jaxlib 0.10.2 cannot compute all such products on a CPU, depending on how their factors lie in memory."""
    random = np.random.default_rng(0)
    query, keys, values = (jnp.asarray(random.standard_normal((20, 30, 4, 32)), jnp.bfloat16) for _ in range(3))

    def total(dtype, *inputs):
        weights = jax.nn.softmax(product("bqhd,bkhd->bhqk", *inputs[:2], dtype))
        return jnp.sum(product("bhqk,bkhd->bqhd", weights, inputs[2], dtype) ** 2)

    found, exact = (
        jax.jit(jax.grad(partial(total, dtype), argnums=(0, 1, 2)))(query, keys, values)
        for dtype in ("bfloat16", "float32")
    )
    for one, other in zip(found, exact, strict=True):
        one, other = (np.asarray(each, np.float32) for each in (one, other))
        assert np.abs(one - other).max() < 0.05 * np.abs(other).max()


def test_a_gradient_of_several_products_is_rounded_once_where_devices_share_them_out():
    """Elsewhere it is the sum of gradients in bfloat16, as it always was."""
    random = np.random.default_rng(1)
    x = jnp.asarray(random.standard_normal((4, 16)), jnp.bfloat16)
    matrices = [jnp.asarray(random.standard_normal((16, 8)), jnp.float32) for _ in range(3)]

    def total(x):
        x = read_by_several(x)
        return sum(product("...i,io->...o", x, each, "bfloat16").sum() for each in matrices)

    ones = jnp.ones((4, 8), jnp.bfloat16)
    parts = [
        jnp.einsum("bo,io->bi", ones, each.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        for each in matrices
    ]
    with shared_out(lambda array: array):
        once = jax.grad(total)(x)
    assert read_by_several(x) is x
    np.testing.assert_array_equal(once, sum(parts).astype(jnp.bfloat16))
    assert (jax.grad(total)(x) != once).any()


def test_logits_lie_where_devices_share_them_out_and_are_untouched_elsewhere():
    logits = jnp.ones((2, 3))
    assert by_class(logits) is logits
    with shared_out(lambda array: array + 1):
        np.testing.assert_array_equal(by_class(logits), logits + 1)
    assert by_class(logits) is logits
