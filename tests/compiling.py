"""Compilation for tests: their models are so small that compiling them is all the work."""

from __future__ import annotations

import sys
from functools import cache, partial

import jax
from jax.interpreters import mlir

# XLA's optimisations would only cost time.
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def share_contexts() -> None:
    """Lets JAX lower all programs in one MLIR context. By itself it makes a new one for each, in 3.5 ms, and the tests lower thousands."""
    inside = sys.modules[mlir.make_ir_context.__module__]  # JAX has no public way
    inside.make_ir_context = cache(inside.make_ir_context)
