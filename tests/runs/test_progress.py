"""How far a run is, and whether anybody works on it, by the files in its folder."""

import fcntl
import json
import os
import socket
from pathlib import Path

import pytest

from one_layer.runs import lock
from one_layer.runs.lock import holder, locked
from one_layer.runs.paths import RunPaths
from one_layer.runs.progress import STOPPED, UNDER_WAY, WAITING, Doing, doing, duration, log_file, progress


@pytest.fixture
def run(tmp_path):
    """A run that is at update 10 after 20 seconds, and that nobody works on."""
    paths = RunPaths(tmp_path / "sweep" / "run")
    paths.path.mkdir(parents=True)
    paths.config_file.write_text("{}")
    paths.metrics_file.write_text('{"step": 10, "seconds": 20.0, "train/loss": 3.0}\n')
    return paths


@pytest.mark.parametrize(
    ("train", "an_epoch", "updates", "left"),
    [
        ({"updates": 100}, None, 100, 180.0),
        ({"updates": 100, "epochs": 2}, 30, 60, 100.0),
        ({"updates": 40, "epochs": 2}, 30, 40, 60.0),
        ({"epochs": 3}, 30, 90, 160.0),
        ({"epochs": 3}, None, None, None),  # an earlier version began it
        ({"updates": 5}, None, 5, 0.0),  # it was made shorter
        ({}, None, None, None),
    ],
)
def test_the_time_left_follows_from_updates_and_epochs(run, train, an_epoch, updates, left):
    run.identity_file.write_text(json.dumps({"epoch_updates": an_epoch} if an_epoch else {}))
    found = progress(run, train)
    assert (found.updates, found.left, found.metric) == (updates, left, "train/loss 3")


def test_a_run_is_under_way_while_a_process_holds_its_folder(run):
    assert doing(run, {}).state == STOPPED
    with locked(run.path, "trains in it"):
        assert holder(run.path) == f"process {os.getpid()} on {socket.gethostname()}"
        assert doing(run, {"updates": 20}).state == UNDER_WAY
    assert holder(run.path) == ""
    run.result_file.write_text('{"steps": 10}')
    assert doing(run, {}) == Doing()
    assert doing(RunPaths(run.path / "none"), {}).state == WAITING


def test_a_lock_file_that_nobody_has_locked_means_nothing(run):
    """It is left from a process that was killed, whose number another one may have got, or was copied with its folder."""
    here = f"process {os.getpid()} on {socket.gethostname()}".encode()
    for said in (here, b"process 7 on elsewhere", b"", b"\xff"):
        (run.path / ".lock").write_bytes(said)
        assert (holder(run.path), doing(run, {}).state) == ("", STOPPED)
        with (run.path / ".lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert holder(run.path) == (said.decode("utf-8", "replace") or "another process")


def test_who_only_looks_is_in_nobody_s_way(run, monkeypatch):
    look = (run.path / ".lock").open("a+")
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr(lock, "holder", lambda folder: look.close() or holder(folder))
    with locked(run.path, "trains in it"):
        assert look.closed and holder(run.path)


def test_a_failed_run_says_why_and_one_that_goes_on_does_not(run):
    log_file(run.path).write_text("begins\nerror: the text is missing\n")
    assert doing(run, {}).problem == "the text is missing"
    with locked(run.path, "trains in it"):
        assert doing(run, {}).problem == ""
    log_file(run.path).write_text("error: the text is missing\nit goes on\n")
    assert doing(run, {}).problem == ""


def test_a_run_may_be_named_from_inside_its_folder(run, monkeypatch):
    monkeypatch.chdir(run.path)
    assert log_file(Path(".")) == log_file(run.path) and doing(RunPaths("."), {}).state == doing(run, {}).state


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
