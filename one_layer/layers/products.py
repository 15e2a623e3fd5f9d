"""Products in the type that a model computes in. In bfloat16, both factors are bfloat16 and the sums float32, also in the backward pass.

JAX gives the gradient of a product with float32 sums in float32. Its own rules would multiply this gradient with the other factor in
mixed types, which an accelerator computes in float32, several times slower.
"""

from __future__ import annotations

import string
from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

_FLOAT32 = partial(jnp.einsum, preferred_element_type=jnp.float32)


def product(subscripts: str, x: Float[Array, "..."], y: Float[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """The einsum of two arrays, cast to `dtype` first. Returns float32.

    The gradient of each array has the array's own type. Every letter of one array must be in the other or in the result, and `x` must have
    dots if `y` has.
    """
    if jnp.dtype(dtype) != jnp.bfloat16:
        return jnp.asarray(_FLOAT32(subscripts, x.astype(dtype), y.astype(dtype)))
    factors, result = subscripts.split("->")
    first, second = factors.split(",")
    axes = string.ascii_uppercase[: x.ndim - len(first) + len("...")]
    spelled = tuple(each.replace("...", axes) for each in (first, second, result))
    return _rounded((spelled, (x.dtype.name, y.dtype.name)), x, y)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rounded(names: tuple[tuple[str, ...], tuple[str, ...]], x: Array, y: Array) -> Array:
    return _forward(names, x, y)[0]


def _forward(names: tuple[tuple[str, ...], tuple[str, ...]], x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    (first, second, result), _ = names
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return _FLOAT32(f"{first},{second}->{result}", x, y), (x, y)


def _backward(
    names: tuple[tuple[str, ...], tuple[str, ...]], factors: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    ((first, second, result), types), (x, y) = names, factors
    gradient = gradient.astype(jnp.bfloat16)
    of_x = _FLOAT32(f"{result},{second}->{first}", gradient, y)
    of_y = _FLOAT32(f"{first},{result}->{second}", x, gradient)
    return of_x.astype(types[0]), of_y.astype(types[1])


_rounded.defvjp(_forward, _backward)
