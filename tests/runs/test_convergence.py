"""The area under the convergence curve, by hand and by its properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.report.reading import read_runs
from one_layer.runs.convergence import Curve, curve, merit, selected_by, summary
from one_layer.tasks.classification.scoring import SCORES
from tests import ROOT

RISING = Curve((10.0, 20.0, 30.0), (4.0, 8.0, 6.0))


@pytest.mark.parametrize(
    ("until", "area"),
    [(10, 20.0), (20, 20.0 + 60.0), (30, 20.0 + 60.0 + 70.0), (15, 20.0 + 25.0), (40, 150.0 + 60.0), (5, 5.0)],
)
def test_areas_by_hand(until, area):
    """A score starts at 0, straight lines join the evaluations, and the last value is kept."""
    assert RISING.area(until) == pytest.approx(area)


def test_a_score_of_which_less_is_better_holds_its_first_value_before():
    falling = Curve((10.0, 20.0), (6.0, 2.0), less_is_better=True)
    assert falling.area(20) == pytest.approx(60.0 + 40.0)
    assert (falling.best(), falling.reaches(4.0), falling.reaches(1.0)) == (2.0, 20.0, None)


def test_a_curve_that_takes_no_time_has_the_mean_of_its_first_value():
    assert Curve((0.0,), (8.0,)).mean(0.0) == 8.0


def test_nll_selects_where_the_evaluations_lack_the_score():
    lines = [{"step": 1, "train/nll": 2.0}, {"step": 2, "valid/nll": 2.0, "valid/bleu": 0.0}]
    assert [selected_by(lines[:count], "bleu") for count in (0, 1, 2)] == ["bleu"] * 3
    assert (selected_by([{"valid/nll": 2.0}], "bleu"), selected_by([{"valid/nll": 2.0}], "nll")) == ("nll", "nll")


BETTER = {  # a worse and a better value of every score
    **{"nll": (4.0, 2.0), "perplexity": (55.0, 7.0), "bits_per_byte": (3.0, 2.0), "bits_per_character": (3.0, 2.0)},
    **{"bleu": (20.0, 30.0), "accuracy": (0.7, 0.8), "f1": (0.7, 0.8), "matthews": (-0.1, 0.4)},
}


@pytest.mark.parametrize("score", BETTER)
def test_every_score_is_judged_the_right_way_round(score):
    worse, better = BETTER[score]
    metrics = [{"step": 1, f"valid/{score}": worse}, {"step": 2, f"valid/{score}": better}]
    found = curve(metrics, score, "updates")
    assert found.best() == better and found.reaches(better) == 2
    assert merit(score, better) > merit(score, worse)


def test_every_score_of_every_task_is_among_them():
    """The names come from the tasks' own declarations and from the metrics of the runs in results/."""
    names = {*SCORES, "bits_per_byte", "bits_per_character"}
    for run in read_runs(str(ROOT / "results" / "**" / "*.jsonl.zst")):
        assert run.result, run.folder
        names |= {key.removeprefix("valid/") for line in run.metrics for key in line if key.startswith("valid/")}
    assert names == BETTER.keys()


points = st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 50)), min_size=1, max_size=8)


@given(points, st.floats(0.1, 500))
def test_a_better_curve_has_a_larger_area(steps, until):
    x = tuple(np.cumsum([step for step, _ in steps]))
    y = tuple(value for _, value in steps)
    better = tuple(value + 1.0 for value in y)
    assert Curve(x, better).area(until) > Curve(x, y).area(until)


def lines(*scores: float, flops: float = 1.0) -> list[dict[str, float]]:
    """The metrics of a run with an evaluation every 100 updates and 50 seconds; other lines lie between."""
    found: list[dict[str, float]] = []
    for number, score in enumerate(scores, 1):
        found.append({"step": 100 * number - 50, "seconds": 1.0, "train/loss": 1.0})
        evaluated = {"valid/bleu": score, "valid/nll": 9.0 - score, "train/flops": flops * number}
        found.append({"step": 100 * number, "seconds": 50.0 * number, **evaluated})
    return found


def test_the_summary_has_every_axis():
    found = summary(lines(2.0, 4.0, flops=10.0), "bleu")
    assert {axis: part["until"] for axis, part in found.items()} == {"seconds": 100.0, "updates": 200.0, "flops": 20.0}
    assert all(part["mean"] == pytest.approx(part["area"] / part["until"]) for part in found.values())
    assert len({round(part["mean"], 6) for part in found.values()}) == 1  # evenly spaced on every axis
    earlier = lines(2.0, 4.0)
    del earlier[1]["train/flops"]
    assert summary(earlier, "bleu").keys() == {"seconds", "updates"} and not summary(earlier, "f1")
