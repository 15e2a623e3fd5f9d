"""On what a run trains, and whether `model.dtype` suits the processor: said at its start."""

from __future__ import annotations

import os
from pathlib import Path

from one_layer.layers.products import on_cpu
from one_layer.models.sharding import Devices

_NVIDIA = Path("/proc/driver/nvidia/version")  # where NVIDIA's driver is loaded
_PROCESSOR = Path("/proc/cpuinfo")
# The processor's names for products of bfloat16 numbers: Zen 4, Cooper Lake or later; Sapphire Rapids; ARMv8.6.
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")


def has_bfloat16() -> bool | None:
    """Whether the processor multiplies bfloat16 numbers by instructions of its own; None if the system does not say so (Linux does)."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    lists = [line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))]
    return any(name in lists[0] for name in _INSTRUCTIONS) if lists else None


def describe_devices(devices: Devices) -> list[str]:
    """Lines for people: kind and number of the devices, and what to install where JAX leaves an NVIDIA GPU idle."""
    number, kind = devices.mesh.size, devices.mesh.devices.flat[0].device_kind
    if devices.platform != "cpu":
        return [f"trains on {number} x {kind}"]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    said = [f"trains on the CPU, with {cores} cores" + (f" as {number} devices" if number > 1 else "")]
    if _NVIDIA.exists():
        said.append(
            "this machine has an NVIDIA GPU, which this JAX does not use: pip install -r requirements-cuda.txt (no flag is needed then), "
            "or leave it so"
        )
    return said


def describe_precision(dtype: str) -> list[str]:
    """A line for people about `dtype` on this processor; none on accelerators, and none if nothing is known."""
    known = has_bfloat16() if on_cpu() else None
    if known is None:
        return []
    if dtype == "bfloat16":
        return [
            "model.dtype=bfloat16: this processor has instructions for it"
            if known
            else "model.dtype=bfloat16: this processor has no instructions for it "
            f"({' or '.join(_INSTRUCTIONS)} in {_PROCESSOR}), so an update is slower than with model.dtype=float32"
        ]
    return (
        [
            "model.dtype=float32: with model.dtype=bfloat16, for which this processor has instructions, updates are faster"
        ]
        if known
        else []
    )
