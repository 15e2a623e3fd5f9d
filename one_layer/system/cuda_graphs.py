"""CUDA graphs: what a GPU repeats without asking the host."""

import importlib.metadata
import importlib.util
import logging
import os

log = logging.getLogger(__name__)

_FLAG = "--xla_gpu_enable_command_buffer"
# XLA's own list lacks loops, conditions and slices, each turn of which would then go through the host.
_COMMANDS = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
# The versions of jaxlib with which the project was tested. They have these names; a version that lacks a name ends the process.
TESTED = {
    "0.10.2": "on CPUs, and compiled for GPUs and TPUs that were not there",
    "0.11.2": "on an H100 and an H200",
    "0.12.0.1": "on CPUs, and compiled for GPUs that were not there",
}
_added = [""]  # what was added to XLA_FLAGS last; a later call may change its mind
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")


def keep_loops_on_gpu(exchanges: bool = True) -> None:
    """Lets XLA put loops and conditions into CUDA graphs, where JAX has its CUDA plugin.

    The loops of the selection have turns that depend on data; outside a graph, the host waits for each of them. On several GPUs their
    turns exchange counts, so they are in a graph only if `exchanges` are. Exchanges over a network may need the host, which a loop in a
    graph cannot ask: pass False where there are several machines. Must be called before JAX compiles anything. A
    --xla_gpu_enable_command_buffer in XLA_FLAGS overrules it. With an untested version of jaxlib, nothing changes but the log.
    """
    given = os.environ.get("XLA_FLAGS", "").removesuffix(_added[0]).strip()
    cuda = any(importlib.util.find_spec(name) is not None for name in PLUGINS)
    if not cuda or _FLAG in given:
        return
    if (version := importlib.metadata.version("jaxlib")) not in TESTED:
        log.warning(
            "jaxlib %s was not tested with one_layer (%s were), so loops stay outside CUDA graphs, and small updates take longer; "
            "install one of these, or set XLA_FLAGS=%s=%s if your version has these names",
            *(version, ", ".join(TESTED), _FLAG, _COMMANDS),
        )
    else:
        _added[0] = f"{_FLAG}={_COMMANDS}{',COLLECTIVES' if exchanges else ''}"
        os.environ["XLA_FLAGS"] = f"{given} {_added[0]}".strip()
