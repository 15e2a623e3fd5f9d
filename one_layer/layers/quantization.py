"""Trained arrays as a ticket of few bits holds them, seen so already in training (Jacob et al. 2018, arXiv 1712.05877).

The forward pass computes with the rounded values, and the gradient passes straight through the rounding to the float32 values (Bengio et
al. 2013, arXiv 1308.3432). A row is what one input (or one token) contributes: the last axis of an array. In int8 and int4 a value x is a
whole number of steps: round(x / step) · step. The step of a row is its largest magnitude over 127 or 7, rounded to bfloat16. So no
product of a whole number and a step is rounded, and rounding a second time changes nothing.

`one_layer.tickets.precision` writes the same numbers to a file.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from one_layer.layers.beside import ADAPTERS, COLUMNS
from one_layer.layers.trees import Variables, flatten_dict, unflatten_dict

PRECISIONS = ("float32", "bfloat16", "int8", "int4")
VECTORS = ("bias", "scale", COLUMNS)
LARGEST = {"int8": 127, "int4": 7}
LEAST_STEP = np.finfo(np.float32).tiny  # smaller steps are 0, because some processors take them for 0


@dataclass(frozen=True)
class Precisions:
    """How a ticket holds what is trained or fixed: `matrices`, also tables, heads and adapters, and `vectors`: biases, norms and gains."""

    matrices: str = "float32"
    vectors: str = "float32"

    def of(self, leaf: str, shape: tuple[int, ...]) -> str:
        """The precision of an array, by the last word of its path."""
        return self.vectors if leaf in VECTORS else self.matrices if is_matrix(leaf, shape) else "float32"


def is_matrix(leaf: str, shape: tuple[int, ...]) -> bool:
    """Whether an array, by the last word of its path, is a matrix, but for scores."""
    return leaf in ("kernel", *ADAPTERS) and len(shape) > 1


def quantized(variables: Variables, precisions: Precisions) -> Variables:
    """`variables` with the trained and fixed arrays as a ticket of these `precisions` holds them; float32 changes nothing.

    Scores and random weights stay as they are. So do arrays in bfloat16: they were rounded before they were cast.
    """
    if precisions == Precisions():
        return variables
    flat = flatten_dict(variables)
    for path, leaf in flat.items():
        precision = precisions.of(path[-1], leaf.shape) if path[0] in ("params", "frozen") else "float32"
        if precision != "float32" and leaf.dtype == jnp.float32:
            flat[path] = rounded(precision, leaf)
    return {**{name: {} for name in variables}, **unflatten_dict(flat)}


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def rounded(precision: str, values: Float[Array, "*rows columns"]) -> Float[Array, "*rows columns"]:
    """The values that a ticket of this `precision` holds; the gradient passes to `values` unchanged."""
    if precision == "bfloat16":
        return _to_bfloat16(values)
    largest = LARGEST[precision]
    step = _to_bfloat16(jnp.max(jnp.abs(values), axis=-1, keepdims=True) * np.float32(1 / largest))
    step = jnp.where(step < LEAST_STEP, 0.0, step)
    numbers = jnp.clip(jnp.rint(values / jnp.where(step == 0, 1.0, step)), -largest, largest)
    return numbers * step


@rounded.defjvp
def _straight_through(precision: str, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return rounded(precision, *primals), tangents[0]


def _to_bfloat16(values: Array) -> Array:
    # XLA may leave out a conversion to bfloat16 and back, but not this.
    return lax.reduce_precision(values, exponent_bits=8, mantissa_bits=7)


def stored_bytes(precision: str, shape: tuple[int, ...]) -> int:
    """The bytes of an array in this `precision`, with its steps in float32, before any compression."""
    count, rows = math.prod(shape), math.prod(shape[:-1])
    whole = {"float32": 4 * count, "bfloat16": 2 * count, "int8": 4 * rows + count, "int4": 4 * rows + -(-count // 2)}
    return whole[precision]
