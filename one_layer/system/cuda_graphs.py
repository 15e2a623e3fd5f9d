"""CUDA graphs: what a GPU repeats without asking the host."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

_FLAG = "--xla_gpu_enable_command_buffer"
# XLA's own list lacks loops, conditions and slices, each turn of which would then go through the host.
_COMMANDS = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
_KNOWN = "0.10.2"  # the version of jaxlib that has these names; one that lacks a name ends the process
_added = [""]  # what was added to XLA_FLAGS last; a later call may change its mind
_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")


def keep_loops_on_gpu(exchanges: bool = True) -> None:
    """Lets XLA put loops and conditions into CUDA graphs, where JAX has its CUDA plugin.

    The loops of the selection have turns that depend on data; outside a graph, the host waits for each of them. On several GPUs their
    turns exchange counts, so they are in a graph only if `exchanges` are. Exchanges over a network may need the host, which a loop in a
    graph cannot ask: pass False where there are several machines. Must be called before JAX compiles anything. A
    --xla_gpu_enable_command_buffer in XLA_FLAGS overrules it.
    """
    given = os.environ.get("XLA_FLAGS", "").removesuffix(_added[0]).strip()
    cuda = any(importlib.util.find_spec(name) is not None for name in _PLUGINS)
    if cuda and _FLAG not in given and importlib.metadata.version("jaxlib") == _KNOWN:
        _added[0] = f"{_FLAG}={_COMMANDS}{',COLLECTIVES' if exchanges else ''}"
        os.environ["XLA_FLAGS"] = f"{given} {_added[0]}".strip()
