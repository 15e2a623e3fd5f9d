"""What the log says of the devices."""

import jax
import pytest

from one_layer.models.sharding import Devices
from one_layer.training import beginning


@pytest.mark.parametrize("driver", [False, True])
def test_the_log_says_on_what_a_run_trains_and_what_a_gpu_that_lies_idle_needs(monkeypatch, tmp_path, driver):
    path = tmp_path / "version"
    if driver:
        path.touch()
    monkeypatch.setattr(beginning, "_NVIDIA", path)
    first, *more = beginning.describe_devices(Devices.arranged(1, 1, jax.devices()[:1]))
    if jax.default_backend() == "cpu":
        assert first.startswith("trains on the CPU, with ")
        assert ["requirements-cuda.txt" in line for line in more] == [True] * driver
    else:
        assert first == f"trains on 1 x {jax.devices()[0].device_kind}" and not more
