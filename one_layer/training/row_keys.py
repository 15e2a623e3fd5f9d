"""Random keys of devices that each compute some of a batch's rows: each draws what all rows together would give its own rows.

So dropout is the same on every mesh, and no device draws the bits of another one's rows.
"""

import math
from typing import Any

import jax
import jax.extend.random
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from one_layer.system.errors import UserError

_WORDS = 2  # of a key of JAX's own generator, which draws number i of an array from the key and i alone
_THREEFRY = "threefry2x32"


def of_rows(key: Array, part: Int[Array, ""]) -> Array:
    """The key by which the rows of `part` draw theirs of the numbers that `key` gives all rows. All parts have the same number of rows.

    The first axis of an array must be the rows. A number without axes is the same in all parts. Raises: UserError for a key of another
    generator than JAX's own.
    """
    if (kind := str(jax.random.key_impl(key))) != _THREEFRY:
        raise UserError(f"JAX_DEFAULT_PRNG_IMPL={kind} is for one device; leave it out where several share a batch")
    return jax.random.wrap_key_data(_with(jax.random.key_data(key), part.astype(jnp.uint32)), impl=_OF_ROWS)


def _with(words: UInt32[Array, "*keys 2"], part: UInt32[Array, ""]) -> UInt32[Array, "*keys 3"]:
    return jnp.concatenate([words, jnp.broadcast_to(part, (*words.shape[:-1], 1))], axis=-1)


def _whole(key: UInt32[Array, "3"]) -> Array:
    return jax.random.wrap_key_data(key[:_WORDS], impl=_THREEFRY)


def _seed(seed: Any) -> UInt32[Array, "3"]:
    return _with(jax.random.key_data(jax.random.key(seed, impl=_THREEFRY)), jnp.uint32(0))


def _split(key: UInt32[Array, "3"], shape: tuple[int, ...]) -> UInt32[Array, "*keys 3"]:
    return _with(jax.random.key_data(jax.random.split(_whole(key), shape)), key[_WORDS])


def _fold_in(key: UInt32[Array, "3"], number: Any) -> UInt32[Array, "3"]:
    return _with(jax.random.key_data(jax.random.fold_in(_whole(key), number)), key[_WORDS])


def _bits(key: UInt32[Array, "3"], width: int, shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    assert width == 32, f"numbers of {width} bits"
    if not shape:
        return jax.random.bits(_whole(key), shape)
    rows, rest = shape[0], math.prod(shape[1:])
    with jax.enable_x64(True):  # a large batch has more than 2^32 numbers
        row = key[_WORDS].astype(jnp.uint64) * rows + jnp.arange(rows, dtype=jnp.uint64)
        first = row * rest
        high, low = (first >> 32).astype(jnp.uint32), first.astype(jnp.uint32)
    counts = low[:, None] + jnp.arange(rest, dtype=jnp.uint32)
    carry = (counts < low[:, None]).astype(jnp.uint32)
    drawn = jax.extend.random.threefry2x32_p.bind(key[0], key[1], high[:, None] + carry, counts)
    return (drawn[0] ^ drawn[1]).reshape(shape)


_OF_ROWS = jax.extend.random.define_prng_impl(
    key_shape=(_WORDS + 1,), seed=_seed, split=_split, random_bits=_bits, fold_in=_fold_in, name="rows", tag="rows"
)
