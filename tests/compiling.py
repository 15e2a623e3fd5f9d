"""Compilation for tests: their models are so small that compiling them is all the work."""

import os
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import jax
from jax.interpreters import mlir

# XLA's optimisations would only cost time.
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def share_contexts() -> None:
    """Lets JAX lower all programs in one MLIR context. By itself it makes a new one for each, in 3.5 ms, and the tests lower thousands."""
    inside = sys.modules[mlir.make_ir_context.__module__]  # JAX has no public way
    inside.make_ir_context = cache(inside.make_ir_context)


def equations(program: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """All equations of a program and of the programs in it, with the equations that they are in."""
    for equation in program.eqns:
        yield equation, inside
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from equations(inner, (*inside, equation))


def multiply_in_float32() -> None:
    """Lets accelerators multiply float32 numbers in float32, unless JAX_DEFAULT_MATMUL_PRECISION says something else.

    An H100 rounds them to TF32 by default. Logits then differ from those of NumPy and of the golden arrays by up to 6e-3, and the tests
    allow 1e-5.
    """
    if os.environ.get("JAX_PLATFORMS") == "cpu" or "JAX_DEFAULT_MATMUL_PRECISION" in os.environ:
        return  # JAX is not asked for its devices where this is known: it would start them
    if jax.default_backend() != "cpu":
        jax.config.update("jax_default_matmul_precision", "highest")
