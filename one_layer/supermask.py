"""The Supermask: selects which of a matrix's random weights survive.

The mask M keeps the k entries with the largest |S|. The gradient passes straight through the selection to |S| (Shen et al. 2021,
arXiv 2109.03939, section 3; Ramanujan et al. 2020). Nothing here sorts: counting finds the k-th largest entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Int8, Shaped, UInt8

from one_layer.errors import UserError

SELECTIONS = ("magnitude", "score", "threshold", "sigmoid_threshold", "signed_threshold")

_INFINITY = 0x7F800000  # the float32 bit pattern of +inf; larger patterns are NaNs
BLOCK = 64  # rows; a count up to 64 fits int8, and a CPU adds int8 numbers four times as fast as int32
_QUICK_PASSES = 32  # interpolation needs 3 to 15 passes; after 32 passes bisection takes over
_BROKEN = 2  # every entry of a mask whose scores have a NaN
_LEAST_KEPT = 0.005  # the least fraction of a matrix that a threshold keeps, as in the reference


@dataclass(frozen=True)
class Supermask:
    """Turns scores S into a mask of the same shape and dtype.

    `selection` is one of:
    - `magnitude`: keeps the fraction `keep` of entries with the largest |S| (paper A's code).
    - `score`: keeps the fraction `keep` of entries with the largest S (paper A, equation 2).
    - `threshold`: keeps the entries with S > τ, or the largest 0.5 % of S if fewer entries pass.
    - `sigmoid_threshold`: keeps the entries with σ(S) > τ, with the same lower limit.
    - `signed_threshold`: gives sign(S) where |S| > τ and 0 elsewhere, so the mask holds -1, 0 and 1.

    τ is the field `threshold`; the three threshold selections ignore `keep`.
    `dynamic_scale` multiplies every mask by √(size / kept) along `axis` (see `rescaled`).

    With `magnitude` the gradient of the mask goes to |S|, so dL/dS = dL/dM · sign(S). With all others it goes to S itself.
    """

    keep: float | Shaped[Array | np.ndarray, ""] = 0.5  # may be traced, except for `keeps_all`
    selection: str = "magnitude"
    threshold: float = 0.0
    dynamic_scale: bool = False

    @property
    def exact(self) -> bool:
        """Whether `keep` decides how many weights survive; otherwise the scores decide."""
        return self.selection in ("magnitude", "score")

    @property
    def keeps_all(self) -> bool:
        """Whether every weight survives, so that no score needs to be trained."""
        return self.exact and bool(self.keep == 1.0)

    def __call__(self, scores: Float[Array | np.ndarray, "*shape"], axis: int = -1) -> Float[Array, "*shape"]:
        """Returns the mask of `scores`; `dynamic_scale` counts along `axis`. Raises: UserError as `topk_mask` does."""
        return self.applied(self.select(scores), scores, axis)

    def select(self, scores: Float[Array | np.ndarray, "*shape"]) -> Int8[Array, "*shape"]:
        """Returns the entries of the mask, 1, 0 or -1, without a gradient. Raises: UserError as `topk_mask` does.

        A byte instead of a float for each entry is a quarter of the memory to write and to read, which decides what a mask costs.
        """
        if scores.size == 0:
            raise UserError(f"scores of shape {scores.shape} have no entries; give at least one")
        fixed = lax.stop_gradient(jnp.asarray(scores))
        if self.exact:
            return _largest(self.selection, fixed, jnp.asarray(kept_count(scores.size, self.keep), jnp.int32))
        signed, sigmoid = self.selection == "signed_threshold", self.selection == "sigmoid_threshold"
        chosen = _beyond(fixed, self.threshold) if signed else _above(fixed, self.threshold, sigmoid)
        return jnp.where(jnp.any(jnp.isnan(fixed)), _BROKEN, chosen).astype(jnp.int8)

    def applied(
        self, entries: Int8[Array, "*shape"], scores: Float[Array | np.ndarray, "*shape"], axis: int = -1
    ) -> Float[Array, "*shape"]:
        """Returns what `select` returned as a mask, through which the gradient passes to `scores`. Both may have leading axes."""
        scores = jnp.asarray(scores)
        mask = jnp.where(entries == _BROKEN, jnp.nan, entries).astype(scores.dtype)
        return self.scaled(
            _straight_through("magnitude" if self.selection == "magnitude" else "score", mask, scores), axis
        )

    def scaled(self, mask: Float[Array, "*shape"], axis: int) -> Float[Array, "*shape"]:
        """Returns `mask`, rescaled along `axis` if `dynamic_scale` is set."""
        return rescaled(mask, axis) if self.dynamic_scale else mask


def topk_mask(
    scores: Float[Array | np.ndarray, "*shape"],
    keep: float | Shaped[Array | np.ndarray, ""],
    *,
    by: str = "magnitude",
) -> Float[Array, "*shape"]:
    """Returns the mask M of ones and zeros, in the dtype of `scores`, that keeps the k entries with the largest |score|.

    Exactly k = n - int((1 - keep) * n) of the n entries survive. Among ties at the threshold, the lower flat index survives.
    The backward pass treats the selection as the identity on |S|: dL/dS = dL/dM * sign(S), for kept and dropped entries alike
    (paper A, section 3, as its code computes it). `keep` lies in (0, 1] and may be a Python number or traced.

    `by="score"` ranks by the score itself (paper A, equation 2), and the score receives the gradient unchanged: dL/dS = dL/dM.

    A NaN among the scores makes the whole mask NaN, and thus the loss, so that a broken mask never looks right. A traced `keep`
    outside (0, 1] has the same effect.

    Raises: UserError for a `keep` outside (0, 1] that is not traced, for an empty `scores`, and for an unknown `by`.
    """
    if by not in ("magnitude", "score"):
        raise UserError(f"scores cannot be ranked by {by!r}; give magnitude or score")
    return Supermask(keep, by)(scores)


def kept_count(size: int, keep: float | Shaped[Array | np.ndarray, ""]) -> int | Int[Array, ""]:
    """Returns how many of `size` entries survive: k = size - int((1 - keep) * size), computed in double precision.

    A float32 `keep` (every traced one) is rounded to six decimal places first, so that 0.9 means 0.9. A traced value outside
    (0, 1] gives 0, because traced code cannot raise.

    Raises: UserError if `keep` is not traced and lies outside (0, 1].
    """
    if isinstance(keep, jax.core.Tracer):
        # float32 cannot hold (1 - keep) * size exactly, and one entry more or less gives a different mask.
        with jax.enable_x64(True):
            million = lax.optimization_barrier(jnp.float64(1e6))  # otherwise XLA multiplies by a rounded 1e-6
            decimal = jnp.round(keep.astype(jnp.float64) * million) / million
            dropped = jnp.floor((1.0 - decimal) * size).astype(jnp.int32)
            return jnp.where((decimal > 0.0) & (decimal <= 1.0), size - dropped, 0).astype(jnp.int32)
    number = float(keep) if isinstance(keep, (int, float)) else round(float(keep), 6)
    if not 0.0 < number <= 1.0:
        raise UserError(f"keep is {number}; it must lie in (0, 1]: the fraction of the weights that the mask keeps")
    return max(1, size - int((1.0 - number) * size))


def unpack(bits: UInt8[Array | np.ndarray, "bytes"], shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Returns the mask of zeros and ones that `bits` packs.

    The bits are in C order, lowest bit of each byte first. Zeros fill the rest of the last byte.
    """
    return (
        jnp.unpackbits(jnp.asarray(bits), count=math.prod(shape), bitorder="little").reshape(shape).astype(jnp.float32)
    )


def rescaled(mask: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Returns `mask` times √(size / kept), both counted along `axis`, so that the kept weights have the variance of all weights.

    This is the reference's "dynamic scaling". The axis is a projection's outputs, or an embedding's tokens. The gradient passes
    through the factor too. A row or column that keeps nothing stays 0; the reference divides by 0 there.
    """
    kept = jnp.sum(mask, axis=axis, keepdims=True)
    return mask * jnp.where(kept > 0, jnp.sqrt(mask.shape[axis] / jnp.where(kept > 0, kept, 1.0)), 0.0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _straight_through(by: str, mask: Float[Array, "*shape"], scores: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns `mask`; its gradient goes unchanged to |scores| (`by="magnitude"`) or to `scores`."""
    return mask


def _forward(by: str, mask: Float[Array, "*shape"], scores: Float[Array, "*shape"]) -> tuple[Array, Array | None]:
    return mask, scores if by == "magnitude" else None


def _backward(by: str, scores: Array | None, gradient: Float[Array, "*shape"]) -> tuple[None, Array]:
    return None, gradient if scores is None else gradient * jnp.sign(scores)


_straight_through.defvjp(_forward, _backward)


# Jitted because a call outside a jitted function would otherwise compile the loops in it every time.
@partial(jax.jit, static_argnums=0)
def _largest(by: str, scores: Float[Array, "*shape"], k: Int[Array, ""]) -> Int8[Array, "*shape"]:
    """Returns ones at the k largest entries of |S| or S, and zeros."""
    keys = _keys(scores, by)
    largest = _bound(_keys(scores, "magnitude"))
    threshold, at_least = _kth_largest(keys, k, jnp.int32(0) if by == "magnitude" else -largest, largest)
    last_tie = _last_tie(keys, threshold, at_least - k)
    chosen = (keys > threshold) | ((keys == threshold) & ~_after(last_tie, keys.shape))
    broken = (largest > _INFINITY) | (k < 1)
    return jnp.where(broken, _BROKEN, chosen).astype(jnp.int8)


def _bound(keys: Int[Array, "*shape"]) -> Int[Array, ""]:
    """Returns a key that none of |S| exceeds, at most 256 above the largest; above infinity for a NaN, and only then.

    A CPU finds the maximum of floats twice as fast as that of integers. These have less than 24 bits, so they are exact. One number says
    both, because every number is an exchange between devices: CPU devices can wait for ever in two exchanges at the same time.
    """
    top = jnp.max(((keys - 1) >> 8).astype(jnp.float32)).astype(jnp.int32)
    return (jnp.minimum(top, _INFINITY >> 8) + 1) << 8


def _above(scores: Float[Array, "*shape"], threshold: float, sigmoid: bool) -> Int8[Array, "*shape"]:
    """Returns ones where S (or its sigmoid) exceeds the threshold; at least int(0.5 % of the entries) + 1, those with the largest S."""
    chosen = (jax.nn.sigmoid(scores) if sigmoid else scores) > threshold
    least = min(int(_LEAST_KEPT * scores.size) + 1, scores.size)
    return lax.cond(
        _count(chosen) >= least,
        lambda: chosen.astype(jnp.int8),
        lambda: _largest("score", scores, jnp.int32(least)),
    )


def _beyond(scores: Float[Array, "*shape"], threshold: float) -> Float[Array, "*shape"]:
    """Returns the sign of S where |S| exceeds the threshold, and 0 elsewhere."""
    return (jnp.abs(scores) > threshold) * jnp.sign(scores)


def _keys(scores: Float[Array, "*shape"], by: str) -> Int[Array, "*shape"]:
    """Returns integers in the same order as |S| or S, with NaN above everything.

    They also distinguish denormal numbers, which a device may treat as 0.
    """
    bits = lax.bitcast_convert_type(scores.astype(jnp.float32), jnp.int32)
    magnitude = bits & 0x7FFFFFFF
    if by == "magnitude":
        return magnitude
    return jnp.where((bits >= 0) | (magnitude > _INFINITY), magnitude, -magnitude)


def _value(key: Int[Array, ""]) -> Float[Array, ""]:
    """Returns the score, or the magnitude, that has this key."""
    return jnp.sign(key) * lax.bitcast_convert_type(jnp.abs(key), jnp.float32)


def _count(chosen: Bool[Array, "*shape"]) -> Int[Array, ""]:
    """Counts in blocks of rows, so that the columns may lie on many devices: each counts its own, and only the sums travel."""
    rows = chosen.reshape(-1, 1) if chosen.ndim < 2 else chosen
    whole = rows.shape[-2] - rows.shape[-2] % BLOCK
    blocks = rows[..., :whole, :].reshape(*rows.shape[:-2], -1, BLOCK, rows.shape[-1])
    in_blocks = jnp.sum(blocks, axis=-2, dtype=jnp.int8)
    return jnp.sum(in_blocks, dtype=jnp.int32) + jnp.sum(rows[..., whole:, :], dtype=jnp.int32)


def _kth_largest(
    keys: Int[Array, "*shape"], k: Int[Array, ""], lowest: Int[Array, ""], largest: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Finds a threshold t with count(keys >= t) >= k > count(keys > t), or the first t with count(keys >= t) == k.

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
        count = _count(keys >= guess)
        enough = count >= k
        # Illinois algorithm: the end that stays has its weight halved, but only if the last guess did not halve the error.
        # While the error falls that fast, plain interpolation is far better.
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
    """Returns a flat index after which exactly `surplus` entries equal the threshold; searches only if there is a surplus.

    Ties are common: two entries of a big table often hold the same float32. Bisection ends as soon as it separates them.
    """

    def searching(state):
        low, high = state
        return low < high

    def narrow(state):
        low, high = state
        middle = low + (high - low) // 2
        behind = _count((keys == threshold) & _after(middle, keys.shape))
        # If the counts are equal, the interval closes at once.
        low = jnp.where(behind > surplus, middle + 1, jnp.where(behind == surplus, middle, low))
        return low, jnp.where(behind > surplus, high, middle)

    end = jnp.int32(keys.size - 1)
    last, _ = lax.while_loop(searching, narrow, (jnp.where(surplus > 0, 0, end), end))
    return last


def _after(position: Int[Array, ""], shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """Returns which entries come after the flat `position` in C order. It works axis by axis, so it stores no array of indices."""
    after, equal = jnp.zeros((1,) * len(shape), bool), jnp.ones((1,) * len(shape), bool)
    for axis, coordinate in enumerate(jnp.unravel_index(position, shape)):
        along = lax.broadcasted_iota(jnp.int32, shape[axis : axis + 1], 0)
        along = jnp.expand_dims(along, [other for other in range(len(shape)) if other != axis])
        after |= equal & (along > coordinate)
        equal &= along == coordinate
    return jnp.broadcast_to(after, shape)
