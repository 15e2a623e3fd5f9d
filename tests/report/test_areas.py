"""Areas under convergence curves: what they are, and which of them are compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from one_layer.report.areas import areas, cells, left_out, table
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.runs.convergence import summary
from tests.report.made_runs import write_run


def test_areas_are_those_up_to_the_end_of_the_shortest_run(tmp_path):
    """nll is 1 in one run and 2 in the other at each evaluation; the second run is longer. Two others have no curve."""
    for value, steps in ((1.0, (50, 100)), (2.0, (50, 100, 400))):
        folder = write_run(tmp_path / f"{value}", {"optim.lr": value}, 90.0, members=int(value))
        lines = [{"step": step, "seconds": step, "train/flops": 7 * step, "valid/nll": value} for step in steps]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (write_run(tmp_path / "none", {}, 90.0) / "metrics.jsonl").unlink()
    one = write_run(tmp_path / "one update", {"optim.lr": 3.0}, 90.0)  # a control that is not trained has no curve
    (one / "metrics.jsonl").write_text(json.dumps({"step": 1, "seconds": 1, "train/flops": 7, "valid/nll": 9.0}) + "\n")
    (found,) = areas(read_runs(str(tmp_path / "*")))
    shown = table(found, [])
    # No seconds: not as many runs at a time.
    assert shown.columns == ["model", "by updates, T = 100", "by flops, T = 700", "runs"]
    assert shown.rows == [[str(tmp_path / name), name[0], name[0], "1"] for name in ("1.0", "2.0")]
    assert "Less is better" in shown.caption
    values = {
        (Path(row["folder"]).name, row["axis"]): (row["until"], row["mean"], row["area"]) for row in cells([found])
    }
    assert values == {
        ("1.0", "updates"): (100.0, 1.0, 100.0),
        ("2.0", "updates"): (100.0, 2.0, 200.0),
        ("1.0", "flops"): (700.0, 1.0, 700.0),
        ("2.0", "flops"): (700.0, 2.0, 1400.0),
    }


def test_areas_of_a_model_are_the_mean_over_its_seeds(tmp_path):
    """Each run has the same nll at all of its evaluations, which is its area divided by T."""
    nll = {(0.3, 1): 1.0, (0.3, 2): 2.0, (0.3, 3): 3.0, (0.5, 1): 4.0}
    for (keep, seed), value in nll.items():
        folder = write_run(tmp_path / f"{keep},{seed}", {"model.keep": keep, "seed": seed}, 90.0)
        lines = [{"step": step, "seconds": 0.6 * step, "valid/nll": value} for step in (50, 100)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = read_runs(str(tmp_path / "*"))
    (found,) = areas(records)
    rows = table(found, points(records)).rows
    assert [row[1:] for row in rows] == [["2 ± 1", "2 ± 1", "3"], ["4", "4", "1"]]
    assert [row[0] for row in rows] == ["masks keep 0.3", "masks keep 0.5"]


def test_runs_whose_metrics_are_not_those_of_their_training_have_no_areas(tmp_path):
    """Training declares the areas of all its evaluations, or none where lines were missing. Lines after its end do not count."""
    every = [
        {"step": step, "seconds": step, "train/flops": 7.0 * step, "valid/nll": 100 / step}
        for step in range(10, 60, 10)
    ]
    declared = summary(every, "nll")
    for lost in range(-1, 5):
        folder = write_run(tmp_path / f"without {lost}", {"optim.lr": 1.0 + lost}, 90.0, convergence=declared, steps=50)
        lines = [line for place, line in enumerate(every) if place != lost] + [{**every[0], "step": 60}]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = write_run(tmp_path / "declared none", {"optim.lr": 9.0}, 90.0, convergence={}, steps=50)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in every))
    (found,) = areas(read_runs(str(tmp_path / "*")))
    assert [record.folder.name for record in found.records] == ["without -1"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({}, {}, True),
        ({}, {"device": "NVIDIA H100"}, False),
        ({}, {"devices": 2}, False),
        ({}, {"members": 8}, False),
        ({"device": None}, {"device": None}, False),  # nobody knows
        ({"device": "4 x cpu from update 0, 1 x gpu from update 9"}, {}, False),
    ],
)
def test_seconds_are_compared_where_all_runs_say_the_same_device(tmp_path, one, other, alike):
    for name, more in (("a", one), ("b", other)):
        write_run(tmp_path / name, {"optim.lr": float(name == "a")}, 90.0, **more)
    records = read_runs(str(tmp_path / "*"))
    assert ("seconds" not in left_out(records, "nll")) == alike == ("seconds" in areas(records)[0].until)


LANGUAGE = {"task": "causal_lm", "evaluation.stride": 64, "evaluation.valid_tokens": 0}
MASKED = {"task": "masked_lm", "data.mask_share": 0.15, "data.block": 128}
SEARCHED = {"evaluation.valid_beam": 1, "train.select": "bleu"}


@pytest.mark.parametrize(
    ("changes", "other", "score", "together"),
    [
        ({}, {"optim.lr": 1.0}, "nll", True),
        (LANGUAGE, {"evaluation.stride": 32}, "nll", False),
        (LANGUAGE, {"evaluation.valid_tokens": 1000}, "nll", False),
        (MASKED, {"data.mask_share": 0.3}, "nll", False),
        (MASKED, {"data.mask_share": 0.3}, "accuracy", False),
        (MASKED, {"evaluation.valid_tokens": 1000}, "accuracy", False),
        (MASKED, {"evaluation.stride": 32}, "nll", True),  # only a causal model is scored by windows
        (SEARCHED, {"evaluation.valid_beam": 5}, "bleu", False),
        (SEARCHED, {"evaluation.valid_beam": 5}, "nll", True),
    ],
)
def test_areas_are_compared_where_the_score_is_of_the_same(tmp_path, changes, other, score, together):
    for name, more in (("a", {}), ("b", other)):
        folder = write_run(tmp_path / name, changes | more, 90.0, valid={"select": score, "score": 1.0, "step": 2})
        lines = [{"step": step, "seconds": step, "valid/nll": 2.0, f"valid/{score}": 1.0} for step in (1, 2)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = areas(read_runs(str(tmp_path / "*")))
    assert [len(each.records) for each in found] == ([2] if together else [1, 1])
    assert len({table(each, []).caption for each in found}) == len(found)
