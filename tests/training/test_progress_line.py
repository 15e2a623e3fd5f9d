"""The log's lines about a run, by a clock of the test's own."""

from __future__ import annotations

import logging

import pytest

from one_layer.runs.progress import duration
from one_layer.training.progress_line import ProgressLine


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def updates(line: ProgressLine, clock: Clock, first: int, last: int, seconds: float) -> list[int]:
    """Does updates of so many seconds, and returns those after which a line was due; it is then shown."""
    due = []
    for step in range(first, last + 1):
        clock.now += seconds
        if line.updated(step):
            due.append(step)
            line.show(step, 1.0, 1e-3, 500.0)
    return due


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_length_of_the_run_is_said_once_without_the_time_of_compilation(clock, caplog) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLine(1000, 100, terminal=True, clock=clock)
    updates(line, clock, 1, 1, 60.0)
    updates(line, clock, 2, 99, 0.5)
    assert caplog.messages == ["the run takes about 8 min more, at 0.5 s an update"]


def test_a_silence_of_half_a_minute_ends_without_a_terminal(clock, caplog) -> None:
    caplog.set_level(logging.INFO)
    assert updates(ProgressLine(1000, 100, terminal=False, clock=clock), clock, 1, 25, 7.0) == [5, 10, 15, 20, 25]
    assert caplog.messages[0] == "update 5/1000  loss 1.000  rate 0.001  500 tokens/s"
    assert caplog.messages[-1] == "update 25/1000  loss 1.000  rate 0.001  500 tokens/s  1 h 54 min left"
    caplog.clear()
    assert updates(ProgressLine(1000, 100, terminal=True, clock=clock), clock, 1, 15, 7.0) == []
    assert not caplog.messages


def test_no_line_comes_twice_and_none_says_how_long_a_run_takes_that_has_ended(clock, caplog) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLine(20, 10, terminal=False, clock=clock)
    assert updates(line, clock, 1, 20, 4.0) == [8, 16]
    line.show(20, 1.0, 1e-3, 500.0)
    line.show(20, 1.0, 1e-3, 500.0)  # an evaluation after an update that was the last of `log_every`
    assert [message.split("  ")[0] for message in caplog.messages] == ["update 8/20", "update 16/20", "update 20/20"]


def test_evaluations_count(clock, caplog) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLine(400, 100, terminal=False, clock=clock)
    updates(line, clock, 1, 100, 0.2)
    clock.now += 60.0
    line.evaluated()
    line.show(100, 1.0, 1e-3, 500.0)
    assert caplog.messages[-1].endswith("4 min left")  # a minute of updates and three evaluations of a minute


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
