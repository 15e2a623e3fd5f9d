"""The queue of a sweep whose runs do not end."""

from __future__ import annotations

import signal

import pytest

from one_layer.sweeps.jobs import LocalLauncher
from one_layer.sweeps.queue import Queue


def test_a_second_ctrl_c_leaves_no_run_that_seems_to_run(planned, ctrl_c):
    """It does not wait for the runs to save."""

    class Deaf(LocalLauncher):
        def start(self, runs):
            return [self for _ in runs]

        def ended(self):
            return None

        def stop(self, number):
            told.append(number)

    told, changed = [], []
    queue = Queue(planned(), Deaf(["main.py"], 2))
    with pytest.raises(KeyboardInterrupt):
        queue.work(changed.extend, ctrl_c)
    assert told == 4 * [signal.SIGINT] and sorted(queue.states.values()) == 2 * ["interrupted"] + 2 * ["waiting"]
    assert [queue.states[run.name] for run in changed] == 4 * ["interrupted"]  # two changes of each
