"""What the log says of the devices, and of `model.dtype` on processors with and without instructions for bfloat16."""

from __future__ import annotations

import jax
import pytest

from one_layer.layers.products import compiling_for
from one_layer.models.sharding import Devices
from one_layer.training import hardware

FLAGS = {
    "zen4": "processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16 fsrm\n",
    "sapphire rapids": "flags\t\t: avx512f amx_bf16 amx_tile\n",
    "arm": "processor\t: 0\nFeatures\t: fp asimd i8mm bf16\n",
    "zen3": "flags\t\t: fpu avx2\nbugs\t\t: avx512_bf16\n",
    "another": "processor\t: 0\n",
}
HAVE = {"zen4": True, "sapphire rapids": True, "arm": True, "zen3": False, "another": None}


@pytest.fixture(params=FLAGS)
def processor(request, monkeypatch, tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(FLAGS[request.param])
    monkeypatch.setattr(hardware, "_PROCESSOR", path)
    return request.param


def test_the_log_says_what_suits_the_processor(processor):
    assert hardware.has_bfloat16() is HAVE[processor]
    with compiling_for("cpu"):  # whatever device is here
        bfloat16, float32 = map(" ".join, map(hardware.describe_precision, ("bfloat16", "float32")))
    assert ("slower" in bfloat16) == (HAVE[processor] is False)
    assert ("has instructions" in bfloat16) == ("has instructions" in float32) == (HAVE[processor] is True)


def test_nothing_is_said_of_accelerators(processor, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert hardware.describe_precision("bfloat16") == []


def test_a_system_without_cpuinfo_says_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(hardware, "_PROCESSOR", tmp_path / "none")
    assert hardware.has_bfloat16() is None
    with compiling_for("cpu"):
        assert hardware.describe_precision("bfloat16") == []


@pytest.mark.parametrize("driver", [False, True])
def test_the_log_says_on_what_a_run_trains_and_what_a_gpu_that_lies_idle_needs(monkeypatch, tmp_path, driver):
    path = tmp_path / "version"
    if driver:
        path.touch()
    monkeypatch.setattr(hardware, "_NVIDIA", path)
    first, *more = hardware.describe_devices(Devices.arranged(1, 1, jax.devices()[:1]))
    if jax.default_backend() == "cpu":
        assert first.startswith("trains on the CPU, with ")
        assert ["requirements-cuda.txt" in line for line in more] == [True] * driver
    else:
        assert first == f"trains on 1 x {jax.devices()[0].device_kind}" and not more
