"""A run that is killed, whatever it was doing, ends as if nothing had happened."""

import pytest

from tests.kill_and_resume import harness

MOMENTS = {
    "translation": ("a line of metrics", "a checkpoint is saved"),
    "classification": ("a line of metrics",),
    "causal_lm": ("a line of metrics",),
    "masked_lm": ("a line of metrics",),
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "moments"), MOMENTS.items())
def test_killed_runs_end_as_uninterrupted_ones(tmp_path, task, moments):
    report = harness(tmp_path, kills=len(moments), seed=len(task), task=task, moments=moments)
    assert set(report.kills) == set(moments) and report.runs == 1
    assert report.differences == []
