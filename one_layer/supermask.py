"""The Supermask: selects which of a matrix's random weights survive.

The mask M keeps the k entries with the largest |S|. The gradient passes straight through the selection to |S| (Shen et al. 2021,
arXiv 2109.03939, section 3; Ramanujan et al. 2020).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Int8, Shaped, UInt8

from one_layer.selection.counting import count, largest, largest_of_each
from one_layer.system.errors import UserError

SELECTIONS = ("magnitude", "score", "threshold", "sigmoid_threshold", "signed_threshold", "sign")

BROKEN = -128  # every entry of a mask whose scores have a NaN
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
    - `sign`: gives 1 where S is at least 0 and -1 elsewhere, so no weight is dropped.

    τ is the field `threshold`; the three threshold selections ignore `keep`, and so does `sign`.
    `dynamic_scale` multiplies every mask by √(size / kept) along `axis` (see `rescaled`).

    With `magnitude` the gradient of the mask goes to |S|, so dL/dS = dL/dM · sign(S). With all others it goes to S itself.

    With a `temperature` T the mask of `sign` is tanh(S / T), which is the sign where T is small (Lahoud et al. 2019, arXiv 1902.00730).
    It is for training alone: `select`, which evaluations and tickets use, knows no T.
    """

    # Of a class of one's own: one of SELECTIONS whose masks have the same values (`one_layer.own_selection`).
    stored_as: ClassVar[str] = ""

    keep: float | Shaped[Array | np.ndarray, ""] = 0.5  # may be traced, except for `keeps_all`
    selection: str = "magnitude"
    threshold: float = 0.0
    dynamic_scale: bool = False
    temperature: float | Float[Array, ""] | None = None

    @property
    def exact(self) -> bool:
        """Whether `keep` decides how many weights survive; otherwise the scores decide."""
        return self.selection in ("magnitude", "score")

    @property
    def by(self) -> str:
        """To what the gradient of the mask passes: `magnitude` for |S|, or `score` for S. A class of one's own may say so too."""
        return "magnitude" if self.selection == "magnitude" else "score"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The bits that say a mask: `mask` (it is not 0), `sign` (it is below 0), or both."""
        return {"signed_threshold": ("mask", "sign"), "sign": ("sign",)}.get(self.selection, ("mask",))

    @property
    def values(self) -> tuple[int, ...]:
        """The values that entries of masks may have."""
        return {"signed_threshold": (-1, 0, 1), "sign": (-1, 1)}.get(self.selection, (0, 1))

    @property
    def mean_square(self) -> float | Shaped[Array | np.ndarray, ""]:
        """The mean of M², by which masks change the variance of weights; for thresholds, where the scores decide, `keep`."""
        return 1.0 if self.selection == "sign" else self.keep

    @property
    def keeps_all(self) -> bool:
        """Whether every weight survives, so that no score needs to be trained."""
        return self.exact and bool(self.keep == 1.0)

    def __call__(self, scores: Float[Array | np.ndarray, "*shape"], axis: int = -1) -> Float[Array, "*shape"]:
        """Returns the mask of `scores`; `dynamic_scale` counts along `axis`. Raises: UserError as `topk_mask` does."""
        return self.applied(self.select(scores), scores, axis)

    def select(self, scores: Float[Array | np.ndarray, "*shape"]) -> Int8[Array, "*shape"]:
        """Returns the entries of the mask, one of `values`, without a gradient.

        Raises: UserError as `topk_mask` does, and for an unknown selection.

        A byte instead of a float for each entry is a quarter of the memory to write and to read, which decides what a mask costs.
        """
        if scores.size == 0:
            raise UserError(f"scores of shape {scores.shape} have no entries; give at least one")
        fixed = lax.stop_gradient(jnp.asarray(scores))
        if self.exact:
            return _largest(self.selection, fixed, jnp.asarray(kept_count(scores.size, self.keep), jnp.int32))
        if self.selection == "sign":
            chosen = jnp.where(fixed < 0, -1, 1)
        elif self.selection == "signed_threshold":
            chosen = (jnp.abs(fixed) > self.threshold) * jnp.sign(fixed)
        elif self.selection in ("threshold", "sigmoid_threshold"):
            chosen = _above(fixed, self.threshold, sigmoid=self.selection == "sigmoid_threshold")
        else:
            raise UserError(f"the selection {self.selection!r:.200} is unknown; give one of {', '.join(SELECTIONS)}")
        return jnp.where(jnp.any(jnp.isnan(fixed)), BROKEN, chosen).astype(jnp.int8)

    def select_each(self, groups: Sequence[Float[Array, "_ _ _"]]) -> list[Int8[Array, "_ _ _"]]:
        """Returns what `select` returns of each matrix. A group is matrices of one shape; one loop finds the largest of all groups."""
        if not self.exact or type(self).select is not Supermask.select:  # or a class of one's own
            return [jax.vmap(self.select)(group) for group in groups]
        k = [kept_count(group[0].size, self.keep) for group in groups]
        found = largest_of_each(self.selection, [lax.stop_gradient(group) for group in groups], k)
        return [_broken_if(nan[:, None, None] | (k < 1), chosen) for (chosen, nan), k in zip(found, k, strict=True)]

    def applied(
        self, entries: Int8[Array, "*shape"], scores: Float[Array | np.ndarray, "*shape"], axis: int
    ) -> Float[Array, "*shape"]:
        """Returns what `select` returned as a mask, through which the gradient passes to `scores`."""
        scores = jnp.asarray(scores)
        mask = jnp.where(entries == BROKEN, jnp.nan, entries).astype(scores.dtype)
        if self.temperature is not None:
            mask *= jnp.tanh(lax.stop_gradient(jnp.abs(scores)) / self.temperature)
        return self.scaled(_straight_through(self.by, mask, scores), axis)

    def scaled(self, mask: Float[Array, "*shape"], axis: int) -> Float[Array, "*shape"]:
        """Returns `mask`, rescaled along `axis` if `dynamic_scale` is set."""
        return rescaled(mask, axis) if self.dynamic_scale else mask


def topk_mask(
    scores: Float[Array | np.ndarray, "*shape"], keep: float | Shaped[Array | np.ndarray, ""], *, by: str = "magnitude"
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
            exact = keep.astype(jnp.float64)
            # A million for each keep, hidden from XLA: by one number for all of them, it would multiply with a rounded 1e-6.
            million = lax.optimization_barrier(0.0 * exact + 1e6)
            decimal = jnp.round(exact * million) / million
            dropped = jnp.floor((1.0 - decimal) * size).astype(jnp.int32)
            return jnp.where((decimal > 0.0) & (decimal <= 1.0), size - dropped, 0).astype(jnp.int32)
    number = float(keep) if isinstance(keep, (int, float)) else round(float(keep), 6)
    if not 0.0 < number <= 1.0:
        raise UserError(f"keep is {number}; it must lie in (0, 1]: the fraction of the weights that the mask keeps")
    return max(1, size - int((1.0 - number) * size))


def rescaled(mask: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Returns `mask` times √(size / kept), both counted along `axis`, so that the kept weights have the variance of all weights.

    The factor is that of the reference's "dynamic scaling", which its models apply to the masks of the tables alone. The axis is that of
    a projection's outputs or an embedding's tokens. The gradient passes through it too. What keeps nothing stays 0, not 0 / 0 as there.
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


def _largest(by: str, scores: Float[Array, "*shape"], k: Int[Array, ""]) -> Int8[Array, "*shape"]:
    """Returns ones at the k largest entries of |S| or S, and zeros; or all broken."""
    chosen, nan = largest(by, scores, k)
    return _broken_if(nan | (k < 1), chosen)


def _broken_if(broken: Bool[Array, "..."], chosen: Bool[Array, "*shape"]) -> Int8[Array, "*shape"]:
    return jnp.where(broken, BROKEN, chosen).astype(jnp.int8)


def _above(scores: Float[Array, "*shape"], threshold: float, sigmoid: bool) -> Int8[Array, "*shape"]:
    """Returns ones where S (or its sigmoid) exceeds the threshold; at least int(0.5 % of the entries) + 1, those with the largest S."""
    chosen = (jax.nn.sigmoid(scores) if sigmoid else scores) > threshold
    least = min(int(_LEAST_KEPT * scores.size) + 1, scores.size)
    return lax.cond(
        count(chosen) >= least,
        lambda: chosen.astype(jnp.int8),
        lambda: _largest("score", scores, jnp.int32(least)),
    )


def unpack_mask(
    bits: Mapping[str, UInt8[Array | np.ndarray, "*layers bytes"]], shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """Returns the mask that `bits` packs by their kinds (see `Supermask.kinds`), or that of each layer.

    In C order, the lowest bit of each byte first; zeros fill the rest of the last byte.
    """
    mask = unpack(bits["mask"], shape) if "mask" in bits else 1.0
    return mask * (1.0 - 2.0 * unpack(bits["sign"], shape)) if "sign" in bits else jnp.asarray(mask)


def unpack(bits: UInt8[Array | np.ndarray, "*layers bytes"], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Returns the mask of zeros and ones that `bits` packs, or that of each layer."""
    unpacked = jnp.unpackbits(jnp.asarray(bits), axis=-1, count=math.prod(shape), bitorder="little")
    return unpacked.reshape(*bits.shape[:-1], *shape).astype(jnp.float32)
