"""Keys of parts of the rows: together, the parts draw what one key draws for all rows."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.training.row_keys import of_rows
from tests import user_error

KEY = jax.random.key(3)
PARTS, ROWS, REST = 3, 2, (5, 7)


def drawn(key, rows):
    """Numbers of keys that were made of `key` as a network makes its own."""
    dropout, layer = jax.random.split(jax.random.fold_in(key, 5))
    return jax.random.bernoulli(dropout, 0.3, (rows, *REST)), jax.random.bernoulli(layer, 0.5)


def test_the_parts_draw_what_all_rows_draw():
    whole, of_all = drawn(KEY, PARTS * ROWS)
    parts = [drawn(of_rows(KEY, jnp.int32(part)), ROWS) for part in range(PARTS)]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in parts]), whole)
    assert {bool(one) for _, one in parts} == {bool(of_all)}, "a number for the whole batch is one in all parts"
    assert len({rows.tobytes() for rows, _ in parts}) == PARTS


def test_another_generator_is_refused():
    with user_error("JAX_DEFAULT_PRNG_IMPL=rbg is for one device"):
        of_rows(jax.random.key(3, impl="rbg"), jnp.int32(0))


@pytest.mark.parametrize("part", [0, 2**17, 2**29 + 3])
def test_a_batch_may_have_more_numbers_than_32_bits_count(part):
    rows, rest = 4, 2**14
    first = part * rows * rest
    counts = first + np.arange(rows * rest, dtype=np.uint64)
    words = jax.random.key_data(KEY)
    high, low = (jnp.asarray(each.astype(np.uint32)) for each in (counts >> np.uint64(32), counts))
    expected = jnp.bitwise_xor(*jax.extend.random.threefry2x32_p.bind(words[0], words[1], high, low))
    found = jax.random.bits(of_rows(KEY, jnp.int32(part)), (rows, rest))
    np.testing.assert_array_equal(found.ravel(), expected)
