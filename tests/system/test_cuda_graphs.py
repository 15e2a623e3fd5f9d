"""The flag that puts loops into CUDA graphs: given where it can help, and never in the place of the user's."""

import importlib.metadata
import importlib.util
import os
import warnings

import pytest

from one_layer.system.cuda_graphs import TESTED, keep_loops_on_gpu

FLAG = "--xla_gpu_enable_command_buffer"


@pytest.fixture
def machine(monkeypatch):
    """A machine with these packages of JAX, and what the user says to XLA."""

    def make(plugin, jaxlib, flags, *exchanges):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == plugin else None)
        monkeypatch.setattr(importlib.metadata, "version", lambda name: jaxlib)
        monkeypatch.setenv("XLA_FLAGS", flags)
        keep_loops_on_gpu(*exchanges)
        return os.environ["XLA_FLAGS"]

    return make


def test_this_jaxlib_is_a_tested_one():
    """It may be newer; whoever runs the tests with it shall know."""
    if (version := importlib.metadata.version("jaxlib")) not in TESTED:
        warnings.warn(f"jaxlib {version} is in no row of one_layer/system/cuda_graphs.py:TESTED", stacklevel=1)


@pytest.mark.parametrize("version", TESTED)
@pytest.mark.parametrize("plugin", ["jax_cuda12_plugin", "jax_cuda13_plugin"])
def test_loops_go_into_graphs_beside_the_flags_of_the_user(machine, plugin, version):
    given = machine(plugin, version, "--xla_dump_to=x")
    assert given.startswith(f"--xla_dump_to=x {FLAG}=") and "WHILE" in given and "CONDITIONAL" in given


@pytest.mark.parametrize("exchanges", [True, False])
def test_exchanges_between_gpus_of_one_machine_go_into_graphs_too(machine, exchanges):
    assert ("COLLECTIVES" in machine("jax_cuda12_plugin", "0.10.2", "", exchanges)) == exchanges
    keep_loops_on_gpu(not exchanges)  # it may change its mind
    assert ("COLLECTIVES" in os.environ["XLA_FLAGS"]) != exchanges and os.environ["XLA_FLAGS"].count(FLAG) == 1


@pytest.mark.parametrize(
    ("plugin", "jaxlib", "flags"),
    [
        ("", "0.10.2", ""),
        ("jax_cuda12_plugin", "0.10.3", ""),  # may not know a name
        ("jax_cuda12_plugin", "0.10.2", f"{FLAG}=FUSION"),
    ],
)
def test_nothing_changes_without_a_gpu_for_another_version_and_where_the_user_says_it(
    machine, plugin, jaxlib, flags, caplog
):
    assert machine(plugin, jaxlib, flags) == flags
    assert ("jaxlib 0.10.3 was not tested with one_layer" in caplog.text) == (jaxlib not in TESTED)
