"""The benchmark measures training steps of a very small model."""

from __future__ import annotations

import math

import pytest

from configs.common import SIZES
from launch import benchmark


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_kinds_of_weights_are_measured_side_by_side(monkeypatch, dtype):
    monkeypatch.setitem(SIZES, "tiny", (16, 32, 2, 1))
    monkeypatch.setattr(benchmark, "VOCABULARIES", (90, 80))
    rows = benchmark.measure("tiny", 48, dtype, 1)
    assert [row["weights"] for row in rows] == ["one_layer", "multi_layer", "dense"] and rows[-1]["of_dense"] == 1.0
    for row in rows:
        assert all(
            math.isfinite(value) and value > 0 for name, value in row.items() if name not in ("weights", "utilisation")
        )
        assert row["of_dense"] == row["seconds"] / rows[-1]["seconds"]
