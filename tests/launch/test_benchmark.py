"""Every benchmark measures what its name says, on a very small model with small vocabularies."""

import json
import math

import pytest

from launch.benchmark import BENCHMARKS
from launch.benchmarks import workloads
from one_layer.runs.records import flatten
from tests.launch.conftest import VOCABULARIES

pytestmark = pytest.mark.slow  # each compiles several models


@pytest.fixture
def measured(request, small):
    """Runs the benchmark that the parameter names, checks all its numbers, and returns its result."""
    result = BENCHMARKS[request.param].measure("tiny", True)
    assert json.loads(json.dumps(result)) == result
    rows = [row for value in result.values() if isinstance(value, list) for row in value]
    numbers = [value for part in (result, *rows) for value in flatten(part).values() if isinstance(value, (int, float))]
    assert numbers and all(math.isfinite(number) and number >= 0 for number in numbers)
    return result


@pytest.mark.parametrize("measured", ["select"], indirect=True)
def test_select(measured):
    for row in measured["masks"]:
        assert row["ratio"] == row["sorting"] / row["counting"]


@pytest.mark.parametrize("measured", ["train"], indirect=True)
def test_train(measured):
    assert measured["ratio"] == measured["masked_seconds"] / measured["dense_seconds"]
    assert measured["peak_bytes"] > 2**20


@pytest.mark.parametrize("measured", ["decode"], indirect=True)
def test_decode(measured):
    assert measured["bytes"]["packed"] < measured["bytes"]["materialized"] <= measured["bytes"]["dense"]
    assert [row["sentences"] for row in measured["sentences_per_second"]] == [workloads.PAIRS]
    line, batch = measured["allocated"]
    for mode in ("packed", "materialized", "dense"):
        assert measured["bytes"][mode] < line[mode] < batch[mode]


@pytest.mark.parametrize("measured", ["ticket"], indirect=True)
def test_ticket(measured):
    layers = 4 * (3 * 4 * 16**2 + 2 * 2 * 16 * 32)  # attentions and feed-forward networks
    weights = layers + sum(VOCABULARIES) * 16
    assert measured["bound_bytes"] == pytest.approx(weights / 8, rel=1e-3)
    assert measured["bound_bytes"] + measured["text_bytes"] < measured["bytes"]


@pytest.mark.parametrize("measured", ["data"], indirect=True)
def test_data(measured):
    assert measured["share"] == measured["needed_per_second"] / measured["pairs_per_second"]


@pytest.mark.parametrize("measured", ["accelerator"], indirect=True)
def test_accelerator(measured):
    assert [row["of_dense"] for row in measured["steps"] if row["side"] == "dense"] == [1.0, 1.0]
    assert all(row["of_peer"] is None for row in measured["steps"])


@pytest.mark.parametrize("measured", ["run"], indirect=True)
def test_run(measured):
    assert measured["of_update"] == measured["update_seconds"] / measured["course_seconds"]
    assert measured["updates"] == 20


@pytest.mark.parametrize("measured", ["startup"], indirect=True)
def test_startup(measured):
    assert [row["cache"] for row in measured["seconds"]] == ["empty", "warm"]
    for row in measured["seconds"]:
        assert 0 < row["imported"] < row["loaded"] < row["translated"]
