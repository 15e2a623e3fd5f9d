"""Areas under convergence curves: what they are, and which of them are compared."""

from pathlib import Path

import pytest

from one_layer.report.areas import areas, left_out, table
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from tests.report.made_runs import score_again, write_curve, write_run


def test_areas_are_those_up_to_the_end_of_the_shortest_run(tmp_path):
    """nll is 1 in one run and 2 in the other at each evaluation; the second run is longer. Two others have no curve."""
    for value, steps in ((1.0, (50, 100)), (2.0, (50, 100, 400))):
        folder = write_run(tmp_path / f"{value}", {"optim.lr": value}, 90.0, members=int(value))
        write_curve(folder, dict.fromkeys(steps, value), flops=7.0)
    (write_run(tmp_path / "none", {}, 90.0) / "metrics.jsonl").unlink()
    write_curve(write_run(tmp_path / "one update", {"optim.lr": 3.0}, 90.0), {1: 9.0})  # a control that is not trained
    (found,) = areas(read_runs(str(tmp_path / "*")))
    shown = table(found, [])
    # No seconds: not as many runs at a time.
    assert shown.columns == ["model", "best nll", "by updates, T = 100", "by flops, T = 700", "runs"]
    assert shown.rows == [[str(tmp_path / name), name[0], name[0], name[0], "1"] for name in ("1.0", "2.0")]
    assert "Less is better" in shown.caption


def test_areas_of_a_model_are_the_mean_over_its_seeds(tmp_path):
    """Each run has the same nll at all of its evaluations, which is its area divided by T."""
    nll = {(0.3, 1): 1.0, (0.3, 2): 2.0, (0.3, 3): 3.0, (0.5, 1): 4.0}
    for (keep, seed), value in nll.items():
        folder = write_run(tmp_path / f"{keep},{seed}", {"model.keep": keep, "seed": seed}, 90.0)
        write_curve(folder, dict.fromkeys((50, 100), value))
    records = read_runs(str(tmp_path / "*"))
    (found,) = areas(records)
    rows = table(found, points(records)).rows
    assert [row[1:] for row in rows] == [[*["2 ± 1"] * 4, "3"], [*["4"] * 4, "1"]]
    assert [row[0] for row in rows] == ["masks keep 0.3", "masks keep 0.5"]
    score_again(tmp_path / "0.3,1", "best", 80.0, beam=9)
    assert [row[1:] for row in table(found, points(read_runs(str(tmp_path / "*")))).rows] == [row[1:] for row in rows]


def test_what_is_saved_until_the_best_fully_weighted_model_is_reached(tmp_path):
    """Of two dense models the better one is the baseline: 2.0 after 40 updates with seed 1, and 1.0 after 30 with seed 2."""
    dense = {"model.weights": "dense", "model.embedding": "trained"}
    runs = {
        "base 1": (dense, 1, (4.0, 3.0, 2.5, 2.0)),
        "base 2": (dense, 2, (4.0, 3.0, 1.0, 1.5)),
        "other dense 1": (dense | {"optim.lr": 9.0}, 1, (4.0, 1.9, 1.9, 1.9)),
        "fast 1": ({}, 1, (3.0, 2.0, 0.1, 0.1)),  # 1 - 20 / 40
        "fast 2": ({}, 2, (2.0, 2.0, 1.5, 1.0)),  # 1 - 40 / 30
        "never 1": ({"optim.lr": 9.0}, 1, (9.0, 8.0, 7.0, 6.0)),
        "never 3": ({"optim.lr": 9.0}, 3, (0.1, 0.1, 0.1, 0.1)),  # a seed that the baseline lacks
        "once 1": ({"optim.lr": 8.0}, 1, (9.0, 8.0, 7.0, 2.0)),
        "once 2": ({"optim.lr": 8.0}, 2, (9.0, 8.0, 7.0, 6.0)),
    }
    for name, (changes, seed, nll) in runs.items():
        write_curve(
            write_run(tmp_path / name, changes | {"seed": seed}, 90.0), dict(zip((10, 20, 30, 40), nll, strict=True))
        )
    records = read_runs(str(tmp_path / "*"))
    every = points(records)
    (found,) = areas(records)
    shown = table(found, every)
    assert [name for name in shown.columns if "saved" in name] == [f"saved by {axis}" for axis in found.until]
    folders = {point.label: Path(point.records[0].folder).name[:-2] for point in every}
    saved = {folders[row[0]]: row[shown.columns.index("saved by updates")] for row in shown.rows}
    assert saved == {
        "base": "0.0% ± 0.0%",
        "other dense": "50.0%",
        "fast": "8.3% ± 58.9%",
        "never": "never",
        "once": "0.0% (1 of 2 runs)",
    }


def test_without_a_fully_weighted_model_nothing_is_said_to_be_saved(tmp_path):
    for seed in (1, 2):
        write_curve(write_run(tmp_path / f"{seed}", {"seed": seed}, 90.0), {10: 3.0, 20: 2.0})
    (found,) = areas(read_runs(str(tmp_path / "*")))
    shown = table(found, points(found.records))
    assert not [name for name in shown.columns if "saved" in name] and "Saved" not in shown.caption


def test_a_run_whose_training_found_lines_missing_has_no_areas(tmp_path):
    for name, more in (("whole", {}), ("missing", {"convergence": {}})):
        write_curve(write_run(tmp_path / name, {}, 90.0, **more), {10: 3.0, 20: 2.0})
    (found,) = areas(read_runs(str(tmp_path / "*")))
    assert [record.folder.name for record in found.records] == ["whole"]


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
