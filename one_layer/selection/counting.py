"""Finds the k largest entries of a matrix of scores. Nothing here sorts: counting finds the k-th largest."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from one_layer.platform import on_gpu

_INFINITY = 0x7F800000  # the float32 bit pattern of +inf; larger patterns are NaNs
BLOCK = 64  # rows; a count up to 64 fits int8, and a CPU adds int8 numbers four times as fast as int32
_QUICK_PASSES = 32  # interpolation needs 3 to 15 passes; after 32 passes bisection takes over


# Jitted because a call outside a jitted function would otherwise compile the loops in it every time.
@partial(jax.jit, static_argnums=0)
def largest(
    by: str, scores: Float[Array, "*shape"], k: Int[Array, ""]
) -> tuple[Bool[Array, "*shape"], Bool[Array, ""]]:
    """Returns which k entries have the largest |S| (`by="magnitude"`) or S (`by="score"`), and whether there is a NaN among all.

    Among ties at the threshold, those with the lower flat index are chosen.
    """
    ((chosen, nan),) = largest_of_each(by, [scores[None]], [k])
    return chosen[0], nan[0]


def largest_of_each(
    by: str, groups: Sequence[Float[Array, "_ ..."]], k: Sequence[int | Int[Array, ""]]
) -> list[tuple[Bool[Array, "_ ..."], Bool[Array, "_"]]]:
    """Returns what `largest` says of each matrix. A group is matrices [number, *shape] of one shape, and has one number `k`.

    One loop searches all matrices, and "all" is the axis of their searches. So a GPU waits for as many passes as the slowest search takes.
    """
    keys, lengths = [_keys(scores, by) for scores in groups], [len(scores) for scores in groups]
    sizes = jnp.asarray(np.repeat([scores[0].size for scores in groups], lengths), jnp.int32)
    wanted = jnp.concatenate([jnp.full(length, each, jnp.int32) for length, each in zip(lengths, k, strict=True)])

    def in_groups(function: Callable[..., Array], *values: Int[Array, "all"]) -> list[Array]:
        """The function of each matrix's keys and of its number among each of `values`."""
        parts = zip(keys, *(jnp.split(each, np.cumsum(lengths)[:-1].tolist()) for each in values), strict=True)
        return [jax.vmap(function)(*part) for part in parts]

    def counted(condition: Callable[..., Bool[Array, "*shape"]], *values: Int[Array, "all"]) -> Int[Array, "all"]:
        return jnp.concatenate(in_groups(lambda *given: count(condition(*given)), *values))

    bounds = in_groups(lambda keys: _bound(jnp.abs(keys)))
    bound = jnp.concatenate(bounds)
    lowest = jnp.zeros_like(bound) if by == "magnitude" else -bound
    threshold, at_least = _kth_largest(partial(counted, jnp.greater_equal), wanted, lowest, bound, sizes)
    tied_after = partial(counted, lambda keys, tie, last: (keys == tie) & _after(last, keys.shape), threshold)
    last_tie = _last_tie(tied_after, at_least - wanted, sizes - 1)
    chosen = in_groups(
        lambda keys, tie, last: (keys > tie) | ((keys == tie) & ~_after(last, keys.shape)), threshold, last_tie
    )
    return [(each, bound > _INFINITY) for each, bound in zip(chosen, bounds, strict=True)]


def _bound(keys: Int[Array, "*shape"]) -> Int[Array, ""]:
    """Returns a key that none of |S| exceeds, at most 256 above the largest; above infinity for a NaN, and only then.

    A CPU finds the maximum of floats twice as fast as that of integers. These have less than 24 bits, so they are exact. One number says
    both, because every number is an exchange between devices: CPU devices can wait for ever in two exchanges at the same time.
    """
    top = jnp.max(((keys - 1) >> 8).astype(jnp.float32)).astype(jnp.int32)
    return (jnp.minimum(top, _INFINITY >> 8) + 1) << 8


def _keys(scores: Float[Array, "*shape"], by: str) -> Int[Array, "*shape"]:
    """Returns integers in the same order as |S| or S; those of a NaN have larger magnitudes than all others.

    They also distinguish denormal numbers, which a device may treat as 0.
    """
    bits = lax.bitcast_convert_type(scores.astype(jnp.float32), jnp.int32)
    magnitude = bits & 0x7FFFFFFF
    if by == "magnitude":
        return magnitude
    return jnp.where(bits >= 0, magnitude, -magnitude)


def _value(key: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns the scores, or the magnitudes, that have these keys."""
    return jnp.sign(key) * lax.bitcast_convert_type(jnp.abs(key), jnp.float32)


def count(chosen: Bool[Array, "*shape"]) -> Int[Array, ""]:
    """Counts in blocks of rows, so that the columns may lie on many devices: each counts its own, and only the sums travel."""
    if on_gpu():  # it gains nothing by int8, and starts more kernels
        return jnp.sum(chosen, dtype=jnp.int32)
    rows = chosen.reshape(-1, 1) if chosen.ndim < 2 else chosen
    whole = rows.shape[-2] - rows.shape[-2] % BLOCK
    blocks = rows[..., :whole, :].reshape(*rows.shape[:-2], -1, BLOCK, rows.shape[-1])
    in_blocks = jnp.sum(blocks, axis=-2, dtype=jnp.int8)
    return jnp.sum(in_blocks, dtype=jnp.int32) + jnp.sum(rows[..., whole:, :], dtype=jnp.int32)


def _kth_largest(
    at_least: Callable[[Int[Array, "all"]], Int[Array, "all"]],
    k: Int[Array, "all"],
    lowest: Int[Array, "all"],
    largest: Int[Array, "all"],
    sizes: Int[Array, "all"],
) -> tuple[Int[Array, "all"], Int[Array, "all"]]:
    """Finds thresholds t with count(keys >= t) >= k > count(keys > t), or the first t with count(keys >= t) == k.

    All keys lie between `lowest` and `largest`; `at_least(t)` is count(keys >= t).

    The search is regula falsi on the count as a function of |S| (or S), which is nearly linear near the threshold. It takes 3 to 15
    passes over the matrix, while bisection of the bits takes 31. Bisection takes over if regula falsi does not converge.

    Returns: t and count(keys >= t).
    """

    def searching(state):
        low, high, count_low, *_ = state
        return (low + 1 < high) & (count_low != k)

    def narrow(state):
        low, high, count_low, count_high, weight_low, weight_high, miss, passes = state
        above, below = (count_low - k + 0.5) * weight_low, (k - count_high - 0.5) * weight_high
        low_value, high_value = _value(low), _value(high)
        value = low_value + (high_value - low_value) * (above / (above + below))
        middle = (low & high) + ((low ^ high) >> 1)  # the mean without low + high, which could overflow
        guess = jnp.where(jnp.isfinite(value) & (passes < _QUICK_PASSES), _keys(value, "score"), middle)
        guess = jnp.clip(guess, low + 1, high - 1)
        found = at_least(guess)
        enough = found >= k
        # Illinois algorithm: the end that stays has its weight halved, but only if the last guess did not halve the error.
        # While the error falls that fast, plain interpolation is far better.
        pull = jnp.where(2 * jnp.abs(found - k) <= miss, 1.0, 0.5)
        return (
            jnp.where(enough, guess, low),
            jnp.where(enough, high, guess),
            jnp.where(enough, found, count_low),
            jnp.where(enough, count_high, found),
            jnp.where(enough, 1.0, weight_low * pull),
            jnp.where(enough, weight_high * pull, 1.0),
            jnp.abs(found - k),
            passes + 1,
        )

    zeros, ones = jnp.zeros_like(sizes), jnp.ones(sizes.shape)
    start = (lowest, largest + 1, sizes, zeros, ones, ones, sizes, zeros)
    threshold, _, found, *_ = _until_all_are_done(searching, narrow, start)
    return threshold, found


def _last_tie(
    after: Callable[[Int[Array, "all"]], Int[Array, "all"]], surplus: Int[Array, "all"], end: Int[Array, "all"]
) -> Int[Array, "all"]:
    """Returns flat indices after which exactly `surplus` entries equal the threshold; searches only where there is a surplus.

    `after` counts such entries after an index. Ties are common: two entries of a big table often hold the same float32. Bisection
    ends as soon as it separates them.
    """

    def searching(state):
        low, high = state
        return low < high

    def narrow(state):
        low, high = state
        middle = low + (high - low) // 2
        found = after(middle)
        # If the counts are equal, the interval closes at once.
        low = jnp.where(found > surplus, middle + 1, jnp.where(found == surplus, middle, low))
        return low, jnp.where(found > surplus, high, middle)

    last, _ = _until_all_are_done(searching, narrow, (jnp.where(surplus > 0, 0, end), end))
    return last


def _until_all_are_done(searching: Callable[..., Any], narrow: Callable[..., Any], start: tuple[Array, ...]) -> Any:
    """The states when no search goes on. What is found stays, while the others go on."""

    def go_on(state):
        goes_on = searching(state)
        return jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), narrow(state), state)

    return lax.while_loop(lambda state: jnp.any(searching(state)), go_on, start)


def _after(position: Int[Array, ""], shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """Returns which entries come after the flat `position` in C order. It works axis by axis, so it stores no array of indices."""
    after, equal = jnp.zeros((1,) * len(shape), bool), jnp.ones((1,) * len(shape), bool)
    for axis, coordinate in enumerate(jnp.unravel_index(position, shape)):
        along = lax.broadcasted_iota(jnp.int32, shape[axis : axis + 1], 0)
        along = jnp.expand_dims(along, [other for other in range(len(shape)) if other != axis])
        after |= equal & (along > coordinate)
        equal &= along == coordinate
    return jnp.broadcast_to(after, shape)
