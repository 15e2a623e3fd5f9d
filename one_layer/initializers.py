"""Random weights that depend only on a seed, a role, a shape and a scheme, and so have the same bits everywhere.

No transcendental function touches an element. Each element is an integer from a random stream, converted to float32 once and
multiplied by one float32 constant. The stream is NumPy's Philox, so no accelerator, JAX version or sharding can change it.

An orthogonal matrix needs sums too. The order of a sum of floats depends on the machine, so every sum here is one of whole numbers
below 2^53, which float64 holds exactly in any order. The rest is one float64 operation per element, defined by IEEE 754 to the last bit.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32

from one_layer.system.errors import UserError

_UNIFORM = {"kaiming_uniform", "xavier_uniform"}
_NORMAL = {"kaiming_normal", "xavier_normal", "normal"}
# Entries drawn at a time. A block's intermediate values fit in the CPU cache, and nothing large is allocated.
_BLOCK = 2**16

# Those that draw every entry by itself.
SCHEMES = tuple(sorted(_UNIFORM | _NORMAL | {"signed_constant", "xavier_constant", "unsigned_constant"}))
ORTHOGONAL = "orthogonal"

# For orthogonal matrices: the most rows (sums stay below 2^53), what entries are multiples of until they are rounded to float32, and
# the factor by which draws become whole numbers with the deviation 2^10.
_MOST_ROWS, _FRACTION, _COARSE = 2**14, 2.0**34, 2.0**-6


def random_weights(
    seed: int, role: str, shape: tuple[int, ...], scheme: str, *, scale: float = 1.0, fan_in: int | None = None
) -> Float32[np.ndarray, "..."]:
    """Draws the matrix of `role`, for instance `encoder/self_attention/query`, in C order.

    The schemes, for a kernel [fan_in, fan_out] (axes before the last two are copies and count towards neither):
    - `kaiming_uniform`: U(±√(6/fan_in)).
    - `xavier_uniform`: U(±√(6/(fan_in+fan_out))).
    - `kaiming_normal`: standard deviation √(2/fan_in).
    - `xavier_normal`: standard deviation √(2/(fan_in+fan_out)).
    - `signed_constant`: ±√(2/fan_in).
    - `xavier_constant`: ±√(2/(fan_in+fan_out)).
    - `unsigned_constant`: +√(2/fan_in) everywhere (a control: only the mask distinguishes the entries).
    - `normal`: standard deviation d^−½, where d is the last axis.
    - `orthogonal`: orthonormal columns, or orthonormal rows if there are fewer rows than columns (Saxe et al. 2014, arXiv 1312.6120).

    `scale` multiplies the bound or the standard deviation. `fan_in` replaces the fan-in of the shape if the matrix is used
    transposed: an embedding [vocabulary, d] is also the output projection, whose fan-in is d.

    Sources: paper A (arXiv 2109.03939), section 4, "Different Initialization"; He et al. 2015; Glorot and Bengio 2010.
    Raises: UserError for an unknown scheme or an empty shape.
    """
    if scheme not in (*SCHEMES, ORTHOGONAL):
        raise UserError(f"unknown scheme {scheme!r} for random weights; give one of {', '.join(SCHEMES)}, {ORTHOGONAL}")
    if not shape or min(shape) < 1:
        raise UserError(f"random weights of shape {shape} for {role!r}: every axis must have at least one entry")
    stream = _stream(seed, role)
    if scheme == ORTHOGONAL:
        return _orthogonal(stream, role, shape) * np.float32(scale)
    numerator, denominator = _variance(scheme, shape, fan_in)
    deviation = scale * math.sqrt(numerator / denominator)
    if scheme == "unsigned_constant":
        return np.full(shape, np.float32(deviation))
    if scheme in _UNIFORM:
        # u = (word >> 8) / 2^24 lies in [0, 1) and becomes (2u - 1) * bound: an integer times bound / 2^24, rounded only once.
        bound = scale * math.sqrt(3 * numerator / denominator)
        constant = np.float32(bound) * np.float32(2.0**-24)
    else:
        constant = np.float32(deviation) * np.float32(2.0**-16 if scheme in _NORMAL else 1.0)
    drawn = np.empty(math.prod(shape), np.float32)
    for start in range(0, drawn.size, _BLOCK):
        block = drawn[start : start + _BLOCK]
        block[:] = _integers(stream, scheme, block.size)
        block *= constant
    return drawn.reshape(shape)


def _orthogonal(stream: np.random.Philox, role: str, shape: tuple[int, ...]) -> Float32[np.ndarray, "rows columns"]:
    """A matrix with orthonormal columns (or rows, if it has fewer), distributed uniformly (by Haar's measure) but for rounding.

    Reflection k sends a random vector of all but the first k coordinates to a multiple of the first of them (Stewart 1980, "The
    efficient generation of random orthogonal matrices"). Q is the product of the reflections, times random signs of the columns. The
    vector of a reflection is rounded to whole numbers before it is used; it stays a reflection. Before the last rounding to float32,
    entries have an error of about √columns · 2^-35. The time grows with rows · columns².
    """
    rows, columns = max(shape), min(shape)
    if len(shape) != 2 or rows > _MOST_ROWS:
        raise UserError(
            f"orthogonal weights of shape {shape} for {role!r}: two axes of at most {_MOST_ROWS:,} are possible"
        )
    reflections = [_reflection(_integers(stream, "normal", rows - first)) for first in range(columns)]
    q = np.zeros((rows, columns))
    for first in reversed(range(columns)):  # before, Q is the identity but for the corner after `first`
        q[first, first] = _FRACTION
        vector, sign = reflections[first]
        corner = q[first:, first:]
        sums = vector @ corner  # exact: at most |vector| |column| < 2^53
        sums *= 2.0 / (vector @ vector)
        step = max(1, _BLOCK // 2 // len(sums))
        for start in range(0, len(vector), step):
            changes = np.multiply.outer(vector[start : start + step], sums)
            corner[start : start + step] -= np.rint(changes, out=changes)
        corner[:, 0] *= sign
    q = (q * (1 / _FRACTION)).astype(np.float32)
    return q if shape[0] == rows else np.ascontiguousarray(q.T)


def _reflection(drawn: Int32[np.ndarray, "n"]) -> tuple[Float64[np.ndarray, "n"], float]:
    """The vector v of the reflection I - 2 v vᵀ / vᵀv that sends `drawn` to a multiple of the first axis, and the sign of its column."""
    x = np.rint(drawn.astype(np.float64) * _COARSE)
    sign = -1.0 if x[0] < 0 else 1.0
    x[0] += sign * np.rint(np.sqrt(x @ x))
    if not x.any():
        x[0] = 1.0
    return x, -sign


def _integers(stream: np.random.Philox, scheme: str, count: int) -> Int32[np.ndarray, "count"]:
    """Returns the next `count` draws before scaling. An even `count` uses every 64-bit word completely."""
    if scheme in _NORMAL:
        # Irwin-Hall: the sum of twelve 16-bit uniforms (in units of 2^-16) has mean 6 and variance 1.
        halves = stream.random_raw(3 * count).astype("<u8", copy=False).view("<u2").reshape(count, 12)
        return halves.sum(axis=1, dtype=np.int32) - np.int32(6 * 2**16)
    words = stream.random_raw((count + 1) // 2).astype("<u8", copy=False).view("<u4")[:count]
    if scheme in _UNIFORM:
        return (words >> np.uint32(8)).astype(np.int32) * np.int32(2) - np.int32(2**24)
    return np.int32(1) - np.int32(2) * (words >> np.uint32(31)).astype(np.int32)  # the top bit is the sign


def _variance(scheme: str, shape: tuple[int, ...], fan_in: int | None) -> tuple[int, int]:
    """Returns the variance of `scheme` as (numerator, denominator), so that no bound is rounded twice."""
    if scheme == "normal":
        return 1, shape[-1]
    inputs = fan_in or (shape[-2] if len(shape) > 1 else shape[-1])
    if scheme.startswith("xavier"):
        return 2, inputs + math.prod(shape[-2:]) // inputs
    return 2, inputs


def _stream(seed: int, role: str) -> np.random.Philox:
    """Returns the stream of raw 64-bit words of a role."""
    digest = hashlib.blake2b(f"{seed}/{role}".encode(), digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(digest, "little"))


@dataclass(frozen=True)
class Recipe:
    """How one matrix, or the matrices of a stack, is drawn. A ticket stores this instead of the weights.

    `layers` is None for one matrix, or the number L of a stack's matrices.
    """

    role: str
    shape: tuple[int, ...]
    scheme: str
    scale: float = 1.0
    fan_in: int | None = None
    layers: int | None = None
    zero_row: int | None = None

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape that `draw` returns: `shape`, or [layers, *shape] if each layer has its own matrix."""
        return self.shape if self.layers is None else (self.layers, *self.shape)

    def draw(self, seed: int) -> Float32[np.ndarray, "..."]:
        """Returns the weights of shape `whole_shape`; with `layers`, layer l is drawn for the role `role#l`."""
        roles = [self.role] if self.layers is None else [f"{self.role}#{layer}" for layer in range(self.layers)]
        drawn = [random_weights(seed, r, self.shape, self.scheme, scale=self.scale, fan_in=self.fan_in) for r in roles]
        weights = drawn[0] if self.layers is None else np.stack(drawn)
        if self.zero_row is not None:
            weights[..., self.zero_row, :] = 0.0
        return weights
