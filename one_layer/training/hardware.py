"""On what a run trains: said at its start."""

from __future__ import annotations

from pathlib import Path

from one_layer.data.preparation.parallel import cores
from one_layer.models.sharding import Devices

_NVIDIA = Path("/proc/driver/nvidia/version")  # where NVIDIA's driver is loaded


def describe_devices(devices: Devices) -> list[str]:
    """Lines for people: kind and number of the devices, and what to install where JAX leaves an NVIDIA GPU idle."""
    number, kind = devices.mesh.size, devices.mesh.devices.flat[0].device_kind
    if devices.platform != "cpu":
        return [f"trains on {number} x {kind}"]
    said = [f"trains on the CPU, with {cores()} cores" + (f" as {number} devices" if number > 1 else "")]
    if _NVIDIA.exists():
        said.append(
            "this machine has an NVIDIA GPU, which this JAX does not use: pip install -r requirements-cuda.txt (no flag is needed then), "
            "or leave it so"
        )
    return said
