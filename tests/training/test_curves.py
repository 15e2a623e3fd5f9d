"""The picture of a run: whole XML, every curve inside its panel, and nothing drawn that was not measured."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.training.curves import draw, ticks

LINES = [{"step": step, "train/nll": 9.0 - step / 100} for step in range(1, 801)]
LINES += [
    {"step": step, "valid/nll": 8.0 - step / 200, "valid/bleu": step / 50, "mask/flips": 1 / step}
    for step in (400, 800)
]


def curves(text: str) -> list[list[tuple[float, float]]]:
    """The points of every curve."""
    paths = [each.get("d", "") for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}path")]
    return [[tuple(map(float, point.split())) for point in path[1:].split("L")] for path in paths if "H" not in path]  # type: ignore[misc]


def test_each_value_has_its_curve_and_stays_in_its_panel() -> None:
    found = curves(draw(LINES, "bleu"))
    assert len(found) == 4 and all(0 <= x <= 640 and 0 <= y <= 3 * 170 for points in found for x, y in points)
    training, validation, bleu, flips = found
    assert len(training) <= 401 and len(validation) == len(bleu) == len(flips) == 2
    assert training[0][1] < training[-1][1] and bleu[0][1] > bleu[-1][1]  # a lower value is further down
    assert training[-1][0] == validation[-1][0] == max(x for x, _ in training)  # every curve ends at the last update


def test_what_was_not_measured_is_not_drawn() -> None:
    assert len(curves(draw(LINES, "nll"))) == 3
    dense = [{name: value for name, value in line.items() if name != "mask/flips"} for line in LINES]
    assert len(curves(draw(dense, "bleu"))) == 3 and "mask" not in draw(dense, "bleu")
    assert curves(draw([], "bleu")) == []
    assert len(curves(draw([{"step": 1, "train/nll": float("nan")}, *LINES], "nll"))) == 3


def test_names_are_text() -> None:
    assert "a&lt;b" in draw([{"step": 1, "valid/a<b": 1.0}], "a<b")


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ticks_hold_the_values(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    room = 1e-6 * max(abs(low), span) + 1e-12
    assert marks[0] <= low + room and marks[-1] >= low + span - room and 2 <= len(marks) <= 7
    assert {round((b - a) / (marks[1] - marks[0]), 3) for a, b in pairwise(marks)} == {1.0}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.25, 0.5, 0.75, 1]), (3, 3, [3, 4, 5, 6]), (5e-324, 5e-324, [0, 0.25, 0.5, 0.75, 1])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)
