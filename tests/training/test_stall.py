"""A line appears in the log when updates stop finishing, and only then."""

from __future__ import annotations

import time

from one_layer.training.stall import StallWatch


def wait_for(condition):
    for _ in range(400):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_a_line_after_each_period_without_an_update(caplog):
    with StallWatch(minutes=0.05 / 60, step=3) as watch:
        wait_for(lambda: len(caplog.messages) >= 2)
        watch.finished(4)
        wait_for(lambda: "update 4" in caplog.messages[-1])
    assert "the last one was update 3" in caplog.messages[0]


def test_nothing_is_said_while_updates_finish_or_if_it_is_switched_off(caplog):
    with StallWatch(minutes=1, step=0) as watch, StallWatch(minutes=0, step=0):
        for step in range(5):
            watch.finished(step)
            time.sleep(0.01)
    assert not caplog.messages
