"""Products in the type that a model computes in. In bfloat16, both factors are bfloat16 and the sums float32, also in the backward pass.

JAX gives the gradient of a product with float32 sums in float32. Its own rules would multiply this gradient with the other factor in
mixed types, which an accelerator computes in float32, several times slower.

A result that is wanted in bfloat16 is its float32 sums, rounded once. An accelerator rounds before it writes them, and so writes, and reads
again, half of the bytes.
"""

import string
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from one_layer.platform import inside, on_cpu

# Of the first factor, of the second one, and of the result:
_Letters = tuple[str, str, str]
_Types = tuple[str, str, str]
_Place = Callable[[Array], Array]
_SHARED: ContextVar[_Place | None] = ContextVar("shared", default=None)


def shared_out(place: _Place) -> AbstractContextManager[None]:
    """Inside it, several devices compute each layer together: each has a part of its features (`mesh.model`).

    `place` shares out an array over these devices by its last axis.
    """
    return inside(_SHARED, place)


def read_by_several(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x`, of which several products with matrices are made.

    Where devices share these out, its gradient is a sum over products and devices. It stays float32 up to this sum, so that XLA adds the
    products first, and reduces once. Rounded to bfloat16 before, it would be reduced for each product.
    """
    return x if _SHARED.get() is None else x.astype(jnp.float32)


def by_class(logits: Float[Array, "*places classes"]) -> Float[Array, "*places classes"]:
    """Logits, of which each device computes some classes where devices share out what a layer computes.

    Then maxima and sums of classes travel. Left to XLA, all devices compute all logits, or sum what each has of them.
    """
    place = _SHARED.get()
    return logits if place is None else place(logits)


def product(
    subscripts: str, x: Float[Array, "..."], y: Float[Array, "..."], dtype: DTypeLike, result: DTypeLike = jnp.float32
) -> Float[Array, "..."]:
    """The einsum of two arrays, cast to `dtype` first. Returns its float32 sums in the type `result`.

    The gradient of each array has the array's own type. Every letter of one array must be in the other or in the result. If `y` has dots,
    `x` must have them too, for the same number of axes: nothing is broadcast.
    """
    factors, made = subscripts.split("->")
    first, second = factors.split(",")
    dotted = x.ndim - len(first) + len("...")  # axes that the dots stand for
    if "..." in second:
        assert y.ndim - len(second) + len("...") == dotted, (
            f"{subscripts}: {x.shape} and {y.shape} differ in their first axes"
        )
    if jnp.dtype(dtype) != jnp.bfloat16:
        sums = jnp.einsum(subscripts, x.astype(dtype), y.astype(dtype), preferred_element_type=jnp.float32)
        return sums.astype(result)
    axes = string.ascii_uppercase[:dotted]
    first, second, made = (each.replace("...", axes) for each in (first, second, made))
    return _rounded((first, second, made), (x.dtype.name, y.dtype.name, jnp.dtype(result).name), x, y)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _rounded(letters: _Letters, types: _Types, x: Array, y: Array) -> Array:
    return _forward(letters, types, x, y)[0]


def _forward(letters: _Letters, types: _Types, x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return _summed(*letters, x, y, types[2]), (x, y)


def _backward(letters: _Letters, types: _Types, kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    (first, second, result), (x, y) = letters, kept
    gradient = gradient.astype(jnp.bfloat16)
    of_x = _summed(result, second, first, gradient, y, types[0])
    return of_x, _summed(first, result, second, x, gradient, types[1])


_rounded.defvjp(_forward, _backward)


def _summed(first: str, second: str, result: str, x: Array, y: Array, dtype: str) -> Array:
    if not (on_cpu() or several_share_a_layer()):  # devices add their parts of a sum in float32
        return jnp.einsum(f"{first},{second}->{result}", x, y, preferred_element_type=jnp.dtype(dtype))
    if on_cpu() and set(first) & set(second) & set(result):
        return _stack(first, second, result, x, y).astype(dtype)
    return jnp.einsum(f"{first},{second}->{result}", x, y, preferred_element_type=jnp.float32).astype(dtype)


def _stack(first: str, second: str, result: str, x: Array, y: Array) -> Array:
    """A stack of products on a CPU: in float32, where they are the same numbers, with the axes of the stack first in all three arrays.

    XLA's CPU backend (jaxlib 0.10.2) stops at some stacks in bfloat16: "Unsupported element type for DotThunk::Execute: BF16 x BF16 =
    F32". With other axes first, it transposes more: attention over 24 tokens and its gradient take a third longer.
    """
    stack = "".join(each for each in result if each in first and each in second)
    rows, columns = ([each for each in result if each in of and each not in stack] for of in (first, second))
    if rows and columns and result.index(rows[0]) > result.index(columns[0]):
        first, second, x, y, rows, columns = second, first, y, x, columns, rows
    left, right = (stack + "".join(each for each in of if each not in stack) for of in (first, second))
    x = jnp.einsum(f"{first}->{left}", x.astype(jnp.float32))
    y = jnp.einsum(f"{second}->{right}", y.astype(jnp.float32))
    found = stack + "".join(rows + columns)
    return jnp.einsum(f"{found}->{result}", jnp.einsum(f"{left},{right}->{found}", x, y))


def several_share_a_layer() -> bool:
    """Whether devices share out what a layer computes (`mesh.model`)."""
    return _SHARED.get() is not None
