"""The Supermask: which of a matrix's random weights survive.

M keeps the k entries of largest |S|, and the gradient passes straight through the selection to |S| (Shen et al. 2021,
arXiv 2109.03939, section 3; Ramanujan et al. 2020). Nothing here sorts: the k-th largest is found by counting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped, UInt8

from one_layer.errors import UserError

SELECTIONS = ("magnitude", "score", "threshold", "sigmoid_threshold", "signed_threshold")

_INFINITY = 0x7F800000  # the float32 bit pattern of +inf; those above it are NaNs
_BLOCK = (64, 128)  # counts of 64 fit int8, of which a CPU adds many at once: four times as fast as adding int32
_QUICK_PASSES = 32  # interpolation needs 3 to 15 passes; what it has not found by then is left to bisection
_LEAST_KEPT = 0.005  # of a matrix under a threshold, as in the reference


@dataclass(frozen=True)
class Supermask:
    """How scores become a mask; calling it on scores gives the mask, in their shape and dtype.

    `selection`: `magnitude` keeps the fraction `keep` of largest |S| (paper A's code), `score` that of largest S (its equation 2).
    `threshold` keeps S > τ and `sigmoid_threshold` σ(S) > τ, or the largest 0.5 % of S where fewer pass; `signed_threshold` gives
    sign(S) where |S| > τ, and so a mask of -1, 0 and 1. τ is `threshold`; `keep` says nothing to these three.
    `dynamic_scale` multiplies every mask by √(size / kept) along `axis` (see `rescaled`).

    The gradient of the mask goes to |S| under `magnitude`, so dL/dS = dL/dM · sign(S), and to S itself under all others.
    """

    keep: float = 0.5
    selection: str = "magnitude"
    threshold: float = 0.0
    dynamic_scale: bool = False

    @property
    def exact(self) -> bool:
        """Whether `keep` says how many weights survive; else the scores do."""
        return self.selection in ("magnitude", "score")

    @property
    def keeps_all(self) -> bool:
        """Whether there is nothing to select, and so nothing to train."""
        return self.exact and self.keep == 1.0

    def __call__(self, scores: Float[Array | np.ndarray, "*shape"], axis: int = -1) -> Float[Array, "*shape"]:
        """Raises: UserError as `topk_mask` does."""
        if self.exact:
            mask = topk_mask(scores, self.keep, by=self.selection)
        else:
            fixed = lax.stop_gradient(jnp.asarray(scores))
            signed, sigmoid = self.selection == "signed_threshold", self.selection == "sigmoid_threshold"
            chosen = _beyond(fixed, self.threshold) if signed else _above(fixed, self.threshold, sigmoid)
            chosen = jnp.where(jnp.any(jnp.isnan(fixed)), jnp.nan, chosen).astype(fixed.dtype)
            mask = _straight_through("score", chosen, jnp.asarray(scores))
        return self.scaled(mask, axis)

    def scaled(self, mask: Float[Array, "*shape"], axis: int) -> Float[Array, "*shape"]:
        """`mask`, multiplied as `dynamic_scale` says."""
        return rescaled(mask, axis) if self.dynamic_scale else mask


def topk_mask(
    scores: Float[Array | np.ndarray, "*shape"],
    keep: float | Shaped[Array | np.ndarray, ""],
    *,
    by: str = "magnitude",
) -> Float[Array, "*shape"]:
    """The mask M of ones and zeros, in the dtype of `scores`, that keeps the k entries of largest |score|.

    k = n - int((1 - keep) * n) of the n entries survive, exactly; ties at the threshold go to the lower flat index. The
    backward pass takes the selection for the identity on |S|: dL/dS = dL/dM * sign(S), for kept and dropped entries alike
    (paper A, section 3, as its code computes it). `keep` in (0, 1] may be a Python number or traced.

    `by="score"` ranks by the score itself (paper A, equation 2), and the gradient goes to it as it is: dL/dS = dL/dM.

    A NaN among the scores makes the whole mask NaN, and so the loss: never a mask that looks right. The same happens for
    a traced `keep` outside (0, 1].

    Raises: UserError for a `keep` outside (0, 1], if it is not traced, for no scores at all, and for an unknown `by`.
    """
    if by not in ("magnitude", "score"):
        raise UserError(f"scores cannot be ranked by {by!r}; known are magnitude and score")
    if scores.size == 0:
        raise UserError(f"scores of shape {scores.shape} have no entries to choose among")
    scores, k = jnp.asarray(scores), jnp.asarray(kept_count(scores.size, keep), jnp.int32)
    return _straight_through(by, _keep_largest(by, lax.stop_gradient(scores), k), scores)


def kept_count(size: int, keep: float | Shaped[Array | np.ndarray, ""]) -> int | Int[Array, ""]:
    """The number k of `size` entries that survive: size - int((1 - keep) * size), in double precision.

    A float32 `keep` (every traced one) is read as the decimal of six places nearest to it, so that 0.9 means 0.9. Traced
    values outside (0, 1] give 0, since a trace cannot raise.

    Raises: UserError if `keep` is not traced and lies outside (0, 1].
    """
    if isinstance(keep, jax.core.Tracer):
        # float32 cannot hold (1 - keep) * size exactly, and one entry more or less is another mask.
        with jax.enable_x64(True):
            million = lax.optimization_barrier(jnp.float64(1e6))  # else XLA multiplies by a rounded 1e-6
            decimal = jnp.round(keep.astype(jnp.float64) * million) / million
            dropped = jnp.floor((1.0 - decimal) * size).astype(jnp.int32)
            return jnp.where((decimal > 0.0) & (decimal <= 1.0), size - dropped, 0).astype(jnp.int32)
    number = float(keep) if isinstance(keep, (int, float)) else round(float(keep), 6)
    if not 0.0 < number <= 1.0:
        raise UserError(f"keep is {number}; it must lie in (0, 1]: the fraction of the weights that the mask keeps")
    return max(1, size - int((1.0 - number) * size))


def unpack(bits: UInt8[Array | np.ndarray, "bytes"], shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """The mask of zeros and ones whose bits these are: C order, the first one lowest in its byte; the last byte filled up with 0."""
    return (
        jnp.unpackbits(jnp.asarray(bits), count=math.prod(shape), bitorder="little").reshape(shape).astype(jnp.float32)
    )


def rescaled(mask: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """`mask` times √(size / kept), both counted along `axis`: what is left has the variance that all had before.

    The reference's "dynamic scaling": along a projection's outputs, a table's tokens. The gradient passes through the factor too.
    A line that keeps nothing stays 0, where the reference divides by 0.
    """
    kept = jnp.sum(mask, axis=axis, keepdims=True)
    return mask * jnp.where(kept > 0, jnp.sqrt(mask.shape[axis] / jnp.where(kept > 0, kept, 1.0)), 0.0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _straight_through(by: str, mask: Float[Array, "*shape"], scores: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`mask`, whose gradient goes to the magnitudes of `scores`, or to themselves, as it is."""
    return mask


def _forward(by: str, mask: Float[Array, "*shape"], scores: Float[Array, "*shape"]) -> tuple[Array, Array | None]:
    return mask, scores if by == "magnitude" else None


def _backward(by: str, scores: Array | None, gradient: Float[Array, "*shape"]) -> tuple[None, Array]:
    return None, gradient if scores is None else gradient * jnp.sign(scores)


_straight_through.defvjp(_forward, _backward)


# Jitted for calls outside of a jitted function: the loops in it would be compiled anew at each.
@partial(jax.jit, static_argnums=0)
def _keep_largest(by: str, scores: Float[Array, "*shape"], k: Int[Array, ""]) -> Float[Array, "*shape"]:
    keys = _keys(scores, by)
    lowest = jnp.int32(0) if by == "magnitude" else jnp.min(keys)
    largest = jnp.max(keys)
    threshold, at_least = _kth_largest(keys, k, lowest, largest)
    last_tie = _last_tie(keys, threshold, at_least - k)
    mask = (keys > threshold) | ((keys == threshold) & ~_after(last_tie, keys.shape))
    broken = (largest > _INFINITY) | (k < 1)
    return jnp.where(broken, jnp.nan, mask).astype(scores.dtype)


def _above(scores: Float[Array, "*shape"], threshold: float, sigmoid: bool) -> Float[Array, "*shape"]:
    """Ones where S, or its sigmoid, exceeds the threshold; where they are fewer than 0.5 % and one, that many largest S."""
    chosen = (jax.nn.sigmoid(scores) if sigmoid else scores) > threshold
    least = min(int(_LEAST_KEPT * scores.size) + 1, scores.size)
    return lax.cond(
        _count(chosen) >= least,
        lambda: chosen.astype(scores.dtype),
        lambda: _keep_largest("score", scores, jnp.int32(least)),
    )


def _beyond(scores: Float[Array, "*shape"], threshold: float) -> Float[Array, "*shape"]:
    """The sign of S where |S| exceeds the threshold, 0 elsewhere."""
    return (jnp.abs(scores) > threshold) * jnp.sign(scores)


def _keys(scores: Float[Array, "*shape"], by: str) -> Int[Array, "*shape"]:
    """Integers in the order of |S| or S; denormal numbers, which a device may take for 0, differ too. A NaN is above all."""
    bits = lax.bitcast_convert_type(scores.astype(jnp.float32), jnp.int32)
    magnitude = bits & 0x7FFFFFFF
    if by == "magnitude":
        return magnitude
    return jnp.where((bits >= 0) | (magnitude > _INFINITY), magnitude, -magnitude)


def _value(key: Int[Array, ""]) -> Float[Array, ""]:
    """The score, or magnitude, that has this key."""
    return jnp.sign(key) * lax.bitcast_convert_type(jnp.abs(key), jnp.float32)


def _count(chosen: Bool[Array, "*shape"]) -> Int[Array, ""]:
    flat = chosen.reshape(-1)
    whole = flat.size - flat.size % math.prod(_BLOCK)
    in_blocks = jnp.sum(flat[:whole].reshape(-1, *_BLOCK), axis=1, dtype=jnp.int8)
    return jnp.sum(in_blocks, dtype=jnp.int32) + jnp.sum(flat[whole:], dtype=jnp.int32)


def _kth_largest(
    keys: Int[Array, "*shape"], k: Int[Array, ""], lowest: Int[Array, ""], largest: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """A threshold t with count(keys >= t) >= k > count(keys > t), or the first found with count(keys >= t) == k.

    Regula falsi on the count as a function of |S| (or S), which is nearly linear near the threshold: 3 to 15 passes over the matrix
    where bisecting the bits takes 31; bisection takes over should it not converge.

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
        middle = (low & high) + ((low ^ high) >> 1)  # their mean, which cannot overflow as their sum can
        guess = jnp.where(jnp.isfinite(value) & (passes < _QUICK_PASSES), _keys(value, "score"), middle)
        guess = jnp.clip(guess, low + 1, high - 1)
        count = _count(keys >= guess)
        enough = count >= k
        # Illinois: the end that stays loses half of its pull, but only where the last guess was not twice as good as the one
        # before it; on a line, plain interpolation is far better.
        pull = jnp.where(2 * jnp.abs(count - k) <= miss, 1.0, 0.5)
        return (
            jnp.where(enough, guess, low),
            jnp.where(enough, high, guess),
            jnp.where(enough, count, count_low),
            jnp.where(enough, count_high, count),
            jnp.where(enough, 1.0, weight_low * pull),
            jnp.where(enough, weight_high * pull, 1.0),
            jnp.abs(count - k),
            passes + 1,
        )

    start = (
        lowest,
        largest + 1,
        jnp.int32(keys.size),
        jnp.int32(0),
        jnp.float32(1.0),
        jnp.float32(1.0),
        jnp.int32(keys.size),
        jnp.int32(0),
    )
    threshold, _, at_least, *_ = lax.while_loop(searching, narrow, start)
    return threshold, at_least


def _last_tie(keys: Int[Array, "*shape"], threshold: Int[Array, ""], surplus: Int[Array, ""]) -> Int[Array, ""]:
    """A flat index with exactly `surplus` of the entries at the threshold behind it; no search where there is no surplus.

    Ties are common: two of a big table's entries often share a float32. Bisection ends as soon as it separates them.
    """

    def searching(state):
        low, high = state
        return low < high

    def narrow(state):
        low, high = state
        middle = low + (high - low) // 2
        behind = _count((keys == threshold) & _after(middle, keys.shape))
        # Equal closes the interval at once.
        low = jnp.where(behind > surplus, middle + 1, jnp.where(behind == surplus, middle, low))
        return low, jnp.where(behind > surplus, high, middle)

    end = jnp.int32(keys.size - 1)
    last, _ = lax.while_loop(searching, narrow, (jnp.where(surplus > 0, 0, end), end))
    return last


def _after(position: Int[Array, ""], shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """Which entries lie behind the flat `position` in C order; axis by axis, so that no array of indices is ever stored."""
    after, equal = jnp.zeros((1,) * len(shape), bool), jnp.ones((1,) * len(shape), bool)
    for axis, coordinate in enumerate(jnp.unravel_index(position, shape)):
        along = lax.broadcasted_iota(jnp.int32, shape[axis : axis + 1], 0)
        along = jnp.expand_dims(along, [other for other in range(len(shape)) if other != axis])
        after |= equal & (along > coordinate)
        equal &= along == coordinate
    return jnp.broadcast_to(after, shape)
