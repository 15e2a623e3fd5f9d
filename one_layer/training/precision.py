"""Whether `model.dtype` suits the processor, said at the start of a run on a CPU."""

from __future__ import annotations

from pathlib import Path

from one_layer.layers.products import on_cpu

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
