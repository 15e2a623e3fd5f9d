"""A trained model's matrices as they are computed with, as one function. A process that keeps its program does not import this module."""

from __future__ import annotations

from typing import Any

from one_layer.layers.materializing import computing, materialize
from one_layer.layers.quantization import Precisions, quantized
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask

Variables = dict[str, Any]


def materialized(
    variables: Variables, mask: Supermask, dtype: str, precisions: Precisions, devices: Devices
) -> Variables:
    """`variables` with their masks applied and their arrays rounded as `precisions` say, matrices in the type that is computed in."""
    made = materialize(quantized(variables, precisions), mask, devices.selecting(mask), packed=True)
    return devices.for_computing(computing(made, dtype))
