"""A run that is killed at random moments, whatever it was doing, ends as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.kill_and_resume import harness
from tests.tiny_runs import TASKS


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_killed_runs_end_as_uninterrupted_ones(tmp_path, task):
    report = harness(tmp_path, kills=2, seed=len(task), task=task)
    assert report.kills.total() == 2 and report.runs >= 1
    assert report.differences == []
