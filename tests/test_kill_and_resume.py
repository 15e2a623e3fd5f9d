"""A run that is killed, whatever it was doing, ends as if nothing had happened, and a run in other surroundings ends alike."""

import pytest

from tests import tiny_runs
from tests.kill_and_resume import harness

SURROUNDINGS = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Asia/Kathmandu"}
MOMENTS = {
    "translation": ("a line of metrics", "a checkpoint is saved"),
    "classification": ("a line of metrics",),
    "causal_lm": ("a line of metrics",),
    "masked_lm": ("a line of metrics",),
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "moments"), MOMENTS.items())
def test_killed_runs_and_runs_in_other_surroundings_end_as_uninterrupted_ones(tmp_path, task, moments):
    """In a process with a fixed seed of Python's hashes, another locale and time zone, and files made in another order."""
    report = harness(tmp_path, kills=len(moments), seed=len(task), task=task, moments=moments)
    assert set(report.kills) == set(moments) and report.runs == 1
    assert report.differences == []

    whole, other = tmp_path / "whole", tmp_path / "other"
    (other / "text").mkdir(parents=True)
    for path in sorted((whole / "text").iterdir(), reverse=True):
        (other / "text" / path.name).write_bytes(path.read_bytes())
    tiny_runs.run(other, task, PYTHONHASHSEED="12345", **SURROUNDINGS)
    assert len(tiny_runs.metrics(whole)) > 10
    assert tiny_runs.differences(whole, other) == []
