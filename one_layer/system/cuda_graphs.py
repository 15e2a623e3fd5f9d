"""CUDA graphs: what a GPU repeats without asking the host."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

_FLAG = "--xla_gpu_enable_command_buffer"
# XLA's own list lacks loops, conditions and slices, each turn of which would then go through the host.
_COMMANDS = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
_KNOWN = "0.10.2"  # the version of jaxlib that has these names; one that lacks a name ends the process
_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")


def keep_loops_on_gpu() -> None:
    """Lets XLA put loops and conditions into CUDA graphs, where JAX has its CUDA plugin.

    The loops of the selection have turns that depend on data; outside a graph, the host waits for each of them. Loops that exchange numbers
    between GPUs stay outside. Must be called before JAX compiles anything. A --xla_gpu_enable_command_buffer in XLA_FLAGS overrules it.
    """
    given = os.environ.get("XLA_FLAGS", "")
    cuda = any(importlib.util.find_spec(name) is not None for name in _PLUGINS)
    if cuda and _FLAG not in given and importlib.metadata.version("jaxlib") == _KNOWN:
        os.environ["XLA_FLAGS"] = f"{given} {_FLAG}={_COMMANDS}".strip()
