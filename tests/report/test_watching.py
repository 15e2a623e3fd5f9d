"""Runs that have not finished: on the page, and in a report that is written again while they go on."""

from __future__ import annotations

import json

import pytest

from one_layer.report import under_way, watching, writing
from one_layer.report.reading import read_runs
from one_layer.runs.lock import locked
from one_layer.system.errors import UserError
from tests.report.made_runs import config, write_run


@pytest.fixture
def sweep(tmp_path):
    """A sweep of three runs: one has finished, one is at update 100 of 400 after 60 seconds, and one waits."""
    folder = tmp_path / "sweep"
    write_run(folder / "done", {"seed": 1}, 30.0)
    (write_run(folder / "going on", {"seed": 2, "train.updates": 400}, 30.0) / "result.json").unlink()
    planned = {
        name: {"config": config({"seed": seed}), "words": []}
        for seed, name in enumerate(("done", "going on", "late"), 1)
    }
    (folder / "sweep.json").write_text(json.dumps({"runs": planned}))
    return folder


def test_runs_under_way_come_first_with_the_time_left(sweep, tmp_path):
    with locked(sweep / "going on", "trains in it"):
        shown = under_way.table(read_runs(str(sweep)))
        writing.report(str(sweep), tmp_path / "report")
    going_on, late = shown.rows
    assert going_on == [str(sweep / "going on"), "under way", "100 of 400", "valid/nll 1.7", "3 min"]
    assert late == [str(sweep / "late"), "waiting", "", "", ""]
    page = (tmp_path / "report" / "index.html").read_text()
    assert "100 of 400" in page and "3 min" in page and 'http-equiv="refresh"' not in page
    assert [row[1:2] + row[4:] for row in under_way.table(read_runs(str(sweep))).rows] == [
        ["not finished", ""],
        ["waiting", ""],
    ]


def test_the_time_of_all_runs_follows_from_finished_ones_and_from_those_at_work(sweep):
    """The finished run took 60 s, the one at work has 180 s to go, and one waits: 240 s for one at a time, 120 s for two."""
    with locked(sweep / "going on", "trains in it"):
        assert under_way.remaining(read_runs(str(sweep))) == pytest.approx(240.0)
        with locked(sweep / "late", "trains in it"):
            assert under_way.remaining(read_runs(str(sweep))) == pytest.approx(120.0)
        assert "about 4 min more" in under_way.table(read_runs(str(sweep))).caption
        (sweep / "done" / "result.json").unlink()
        assert under_way.remaining(read_runs(str(sweep))) is None, "nobody knows how long a run takes that waits"
    assert under_way.remaining(read_runs(str(sweep))) is None, "nobody works"


def test_a_run_after_its_last_update_is_being_scored(sweep):
    (sweep / "going on" / "config.json").write_text(json.dumps(config({"train.updates": 100})))
    with locked(sweep / "going on", "trains in it"):
        assert under_way.table(read_runs(str(sweep))).rows[0][-1] == "being scored"


def test_a_report_is_written_again_until_nobody_works_any_more(sweep, tmp_path, monkeypatch):
    """The first look finds the run at work, the second nothing new, the third a new score, and the fourth the end."""
    out, written, pauses = tmp_path / "report", [], []

    def write(pattern, folder, refresh=None):
        written.append(refresh)

    monkeypatch.setattr(watching, "report", write)
    lock = locked(sweep / "going on", "trains in it")
    lock.__enter__()
    metrics = sweep / "going on" / "metrics.jsonl"

    def sleep(seconds):
        pauses.append(seconds)
        assert len(written) == (1, 1, 2)[len(pauses) - 1]
        if len(pauses) == 2:
            metrics.write_text(metrics.read_text() + '{"step": 125, "seconds": 75.0, "train/loss": 2.0}\n')
        if len(pauses) == 3:
            lock.__exit__(None, None, None)

    watching.watch(str(sweep), out, sleep)
    assert len(pauses) == 3 and min(pauses) >= 10
    assert written[:2] == [10.0, 10.0] and written[2:] == [None], "the last page does not load itself anew"


def test_a_sweep_between_two_runs_is_watched(sweep):
    records = read_runs(str(sweep))
    assert not under_way.works(records)
    with locked(sweep, "runs this sweep"):
        assert under_way.works(records)


def test_nothing_to_watch_is_said(tmp_path):
    with pytest.raises(UserError, match="matches no folder of a run"):
        watching.watch(str(tmp_path / "none"), tmp_path / "report")


def test_a_watched_page_loads_itself_anew(sweep, tmp_path):
    writing.report(str(sweep), tmp_path, refresh=10.0)
    assert '<meta http-equiv="refresh" content="10">' in (tmp_path / "index.html").read_text()
