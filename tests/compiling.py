"""`jax.jit` for models so small that compiling them is all the work: XLA's optimisations would only cost time."""

from __future__ import annotations

from functools import partial

import jax

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
