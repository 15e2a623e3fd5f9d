"""Every benchmark measures what its name says, on a very small model with small vocabularies."""

from __future__ import annotations

import itertools
import json
import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from configs.common import SIZES
from launch.benchmark import BENCHMARKS
from launch.benchmarks import floor, growth, precision, reservoirs, workloads
from launch.benchmarks.growth import decoding_flops, draw
from one_layer.models import ModelConfig
from one_layer.models.flops import update_flops
from one_layer.runs.records import flatten

pytestmark = pytest.mark.slow  # each compiles several models

VOCABULARIES = (90, 80)


@pytest.fixture
def small(monkeypatch):
    """The size `tiny`, and vocabularies that take little time in the models and batches of all benchmarks."""
    monkeypatch.setitem(SIZES, "tiny", (16, 32, 2, 4))
    smaller = {
        "IWSLT14_VOCABULARIES": VOCABULARIES,
        "model_of": partial(workloads.model_of, vocabularies=VOCABULARIES),
        "random_batch": partial(workloads.random_batch, min(VOCABULARIES)),
    }
    monkeypatch.setattr(workloads, "IWSLT14_VOCABULARIES", VOCABULARIES)
    for module in BENCHMARKS.values():
        for name in smaller.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, smaller[name])


@pytest.fixture
def measured(request, monkeypatch, small):
    """Runs the benchmark that the parameter names, checks all its numbers, and returns its result."""
    monkeypatch.setattr(floor, "_SIDE", 100)
    monkeypatch.setattr(floor, "_ARRAY", 1 << 16)
    monkeypatch.setattr(floor, "_TRACED", 1)
    monkeypatch.setattr(reservoirs, "in_turn", two_in_turn)
    monkeypatch.setattr(growth, "searcher", sparing(growth.searcher, 1))
    monkeypatch.setattr(growth, "Training", sparing(growth.Training, 2))
    result = BENCHMARKS[request.param].measure("tiny", True)
    assert json.loads(json.dumps(result)) == result
    rows = [row for value in result.values() if isinstance(value, list) for row in value]
    numbers = [value for part in (result, *rows) for value in flatten(part).values() if isinstance(value, (int, float))]
    assert numbers and all(math.isfinite(number) and number >= 0 for number in numbers)
    return result


def two_in_turn(sides, rounds):
    """The seconds of two kinds of reservoirs, for all others too: to compile every one would take long."""
    seconds = workloads.in_turn({name: sides[name] for name in ("none", "3 ffn, policy")}, rounds)
    return dict.fromkeys(sides, seconds["none"]) | seconds


def sparing(make, count):
    """`make` for the first calls, which makes what is measured, and for all others something that does nothing."""
    numbers = itertools.count()
    return lambda *given: make(*given) if next(numbers) < count else lambda *_: np.zeros(1)


@pytest.mark.parametrize("measured", ["select"], indirect=True)
def test_select(measured):
    for row in measured["masks"]:
        assert row["ratio"] == row["sorting"] / row["counting"]


@pytest.mark.parametrize("measured", ["floor"], indirect=True)
def test_floor(measured):
    """The rows are the whole update, and no operation of the model is missing."""
    for dtype in ("float32", "bfloat16"):
        rows = measured[f"{dtype}_operations"]
        whole = 1e3 * measured[f"{dtype}_seconds"]
        assert sum(row["milliseconds"] for row in rows) == pytest.approx(whole, rel=0.01)
        assert {"masks", "Adam", "norms"} < {row["operation"] for row in rows}
    assert any("bf16" in row["operation"] for row in measured["bfloat16_operations"])


def test_precision(monkeypatch, small):
    monkeypatch.setattr(precision, "_RECIPES", ())
    (row,) = precision.measure("tiny", True)["updates"]
    assert row["ratio"] == row["bfloat16_seconds"] / row["float32_seconds"] > 0


@pytest.mark.parametrize("measured", ["train"], indirect=True)
def test_train(measured):
    assert measured["ratio"] == measured["masked_seconds"] / measured["dense_seconds"]
    assert measured["peak_bytes"] > 2**20


@pytest.mark.parametrize("measured", ["decode"], indirect=True)
def test_decode(measured):
    assert measured["bytes"]["packed"] < measured["bytes"]["materialized"] <= measured["bytes"]["dense"]
    line, batch = measured["allocated"]
    for mode in ("packed", "materialized", "dense"):
        assert measured["bytes"][mode] < line[mode] < batch[mode]


@pytest.mark.parametrize("measured", ["growth"], indirect=True)
def test_growth(measured, tmp_path):
    """What grows takes more operations, and only that varies. A line of the picture shows it."""
    for kind in ("decoding", "training"):
        for first, second in pairwise(measured[kind]):
            if first["varied"] == second["varied"]:
                same = first.keys() - {
                    name for name in first if "seconds" in name or name in ("ratio", "gigaflops", "steps")
                }
                assert {name for name in same if first[name] != second[name]} == {first["varied"]}
                assert first["gigaflops"] < second["gigaflops"]
    draw(measured, tmp_path / "growth.svg")
    shown = (tmp_path / "growth.svg").read_text("utf-8")
    assert all(f"{row['varied']} {row[row['varied']]}, " in shown for row in measured["decoding"][::2])


def test_decoding_takes_the_operations_of_a_forward_pass_but_for_what_lies_ahead():
    """A third of an update's, in which every position attends to all others, and here only to those before it and itself."""
    config = ModelConfig(40, 50, 16, 32, 2, 3, 2, weights="dense")
    rows, source, target = 7, 5, 9
    ahead = 2 * rows * 4 * 16 * target * (target - 1) // 2
    assert 3 * (decoding_flops(config, rows, 1, source, target) + ahead) == update_flops(config, rows, source, target)
    beams = [decoding_flops(config, rows, beam, source, target) for beam in (1, 2, 3)]
    assert beams[2] - beams[1] == beams[1] - beams[0] < beams[0]


@pytest.mark.parametrize("measured", ["ticket"], indirect=True)
def test_ticket(measured):
    layers = 4 * (3 * 4 * 16**2 + 2 * 2 * 16 * 32)  # attentions and feed-forward networks
    weights = layers + sum(VOCABULARIES) * 16
    assert measured["bound_bytes"] == pytest.approx(weights / 8, rel=1e-3)
    assert measured["bound_bytes"] + measured["text_bytes"] < measured["bytes"]


@pytest.mark.parametrize("measured", ["reservoirs"], indirect=True)
def test_reservoirs(measured):
    """Reservoirs have no optimiser state (a policy has one), and skipping their backward pass leaves out operations."""
    rows = {row["reservoirs"]: row for row in measured["steps"]}
    assert len({row["optimizer_bytes"] for name, row in rows.items() if "policy" not in name}) == 1
    for kind in ("transformer", "ffn", "gru", "conv"):
        flops = [rows[name]["gigaflops"] for name in ("none", f"3 {kind}, identity", f"3 {kind}")]
        assert flops == sorted(set(flops))


@pytest.mark.parametrize("measured", ["data"], indirect=True)
def test_data(measured):
    assert [row["step"] for row in measured["preparation"]][:4] == ["tokenize", "learn", "split", "load"]


@pytest.mark.parametrize("measured", ["startup"], indirect=True)
def test_startup(measured):
    assert [row["cache"] for row in measured["seconds"]] == ["empty", "warm"]
    for row in measured["seconds"]:
        assert 0 < row["imported"] < row["loaded"] < row["translated"]
