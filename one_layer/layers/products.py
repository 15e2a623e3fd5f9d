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

_Letters = tuple[str, str, str]  # of the first factor, of the second one, and of the result
_Types = tuple[str, str]


def product(subscripts: str, x: Float[Array, "..."], y: Float[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """The einsum of two arrays, cast to `dtype` first. Returns float32.

    The gradient of each array has the array's own type. Every letter of one array must be in the other or in the result. If `y` has dots,
    `x` must have them too, for the same number of axes: nothing is broadcast.
    """
    factors, result = subscripts.split("->")
    first, second = factors.split(",")
    dotted = x.ndim - len(first) + len("...")  # axes that the dots stand for
    if "..." in second:
        assert y.ndim - len(second) + len("...") == dotted, (
            f"{subscripts}: {x.shape} and {y.shape} differ in their first axes"
        )
    if jnp.dtype(dtype) != jnp.bfloat16:
        return jnp.einsum(subscripts, x.astype(dtype), y.astype(dtype), preferred_element_type=jnp.float32)
    axes = string.ascii_uppercase[:dotted]
    first, second, result = (each.replace("...", axes) for each in (first, second, result))
    return _rounded((first, second, result), (x.dtype.name, y.dtype.name), x, y)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _rounded(letters: _Letters, types: _Types, x: Array, y: Array) -> Array:
    return _forward(letters, types, x, y)[0]


def _forward(letters: _Letters, types: _Types, x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return _summed(*letters, x, y), (x, y)


def _backward(letters: _Letters, types: _Types, kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    (first, second, result), (x, y) = letters, kept
    gradient = gradient.astype(jnp.bfloat16)
    of_x, of_y = _summed(result, second, first, gradient, y), _summed(first, result, second, x, gradient)
    return of_x.astype(types[0]), of_y.astype(types[1])


_rounded.defvjp(_forward, _backward)


def _summed(first: str, second: str, result: str, x: Array, y: Array) -> Array:
    if set(first) & set(second) & set(result) and jax.default_backend() == "cpu":
        # A stack of products. XLA's CPU backend (jaxlib 0.10.2) stops at some of them: "Unsupported element type for DotThunk::Execute:
        # BF16 x BF16 = F32". In float32 they are the same numbers.
        x, y = x.astype(jnp.float32), y.astype(jnp.float32)
    return jnp.einsum(f"{first},{second}->{result}", x, y, preferred_element_type=jnp.float32)
