"""Runs that have not finished: which points they are missing from."""

from __future__ import annotations

import pytest

from one_layer.report.points import points
from one_layer.report.reading import read_runs
from tests.report.made_runs import found, score_again, write_run


@pytest.mark.parametrize("imported", [False, True])
def test_a_run_that_has_not_finished_has_a_score_or_is_missing_but_never_both(tmp_path, imported):
    """An imported run has no result either, but it is whole."""
    write_run(tmp_path / "1", {}, 30.0)
    folder = write_run(tmp_path / "2", {"seed": 2}, 20.0)
    (folder / "result.json").unlink()
    if imported:
        (folder / "metrics.jsonl").unlink()
    score_again(folder, "best", 20.0, step=100)
    shown = {(point.scored.checkpoint, point.values, len(point.missing)) for point in found(tmp_path)}
    early = {("best", (30.0,), 1), ("best, update 100", (20.0,), 0)}
    assert shown == ({("best", (30.0, 20.0), 0)} if imported else early)


def test_missing_runs_of_a_sweep_are_missing_points(runs):
    every = points(read_runs(str(runs)))
    lost = [point for point in every if point.missing]
    assert sorted((len(point.values), len(point.missing), point.keep) for point in lost) == [(0, 3, 0.7), (2, 1, 0.3)]


def test_a_missing_seed_is_missing_from_the_mean_of_the_others(tmp_path):
    """Also of a text in a folder: a run that has not finished has no fingerprint of it."""
    text = {"data.source": "text", "data.directory": "there"}
    for seed in (1, 2):
        write_run(tmp_path / f"{seed}", text | {"seed": seed}, 30.0)
    (tmp_path / "2" / "result.json").unlink()
    (point,) = found(tmp_path)
    assert point.values == (30.0,) and [record.seed for record in point.missing] == [2]


def test_a_run_is_not_missed_where_another_was_only_scored_once_more(tmp_path):
    folder = write_run(tmp_path / "1", {}, 30.0)
    write_run(tmp_path / "2", {"seed": 2}, 30.0)
    (tmp_path / "2" / "result.json").unlink()
    score_again(folder, "best", 29.0, beam=1)
    assert sorted((point.values, len(point.missing)) for point in found(tmp_path)) == [((29.0,), 0), ((30.0,), 1)]


def test_a_run_that_was_given_up_takes_no_seed_from_the_finished_ones(tmp_path):
    (write_run(tmp_path / "a first try", {}, 0.0) / "result.json").unlink()
    for seed in (1, 2):
        write_run(tmp_path / f"seed {seed}", {"seed": seed}, 30.0 + seed)
    whole = [point for point in found(tmp_path) if point.values]
    assert [sorted(point.values) for point in whole] == [[31.0, 32.0]] and not whole[0].missing


def test_a_run_on_another_text_is_not_missed_here(tmp_path):
    """Both texts have a test set of the same name."""
    write_run(tmp_path / "here", {}, 30.0)
    write_run(tmp_path / "there", {"data.source": "text", "data.directory": "text"}, 40.0, data={"test": "dddd4444"})
    (write_run(tmp_path / "going on", {"optim.lr": 0.5}, 0.0) / "result.json").unlink()
    missing = {point.bench.content: len(point.missing) for point in found(tmp_path) if point.missing}
    assert missing == {"cccc3333": 1}


@pytest.mark.parametrize("pattern", ["./runs/*", "runs/*/", "runs//*", "./runs/", "runs/**"])
def test_missing_runs_are_found_however_the_pattern_is_written(runs, monkeypatch, pattern):
    monkeypatch.chdir(runs.parent)
    assert read_runs(pattern) == read_runs("runs/*") and len(read_runs(pattern)) == len(read_runs(str(runs)))
