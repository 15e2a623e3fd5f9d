"""Sweeps: what runs, what is skipped, continued and refused. A small program stands in for main.py, so that nothing is trained."""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path

import pytest

from one_layer.commands import sweep
from one_layer.runs.lock import locked
from one_layer.runs.progress import progress
from one_layer.sweeps import plan as plans
from one_layer.sweeps.claim import claim
from one_layer.sweeps.jobs import Launcher, Process, problem
from one_layer.sweeps.scores import scores
from one_layer.system.errors import UserError

PROGRAM = Path(__file__).with_name("sweep_program.py")


def run(plan, jobs=2):
    return sweep.run_sweep(plan, Launcher([sys.executable, str(PROGRAM)], jobs))


def finished(workdir):
    return {path.parent.name for path in workdir.glob("*/result.json")}


def starts(workdir):
    return {path.parent.name: int(path.read_text()) for path in workdir.glob("*/starts")}


def test_every_run_has_a_folder(planned, tmp_path):
    assert run(planned()) == 0
    names = {"default", "seed=2", "keep=0.3", "keep=0.3,seed=2"}
    assert starts(tmp_path / "runs") == dict.fromkeys(names, 1)
    assert finished(tmp_path / "runs") == names
    for each in planned().runs:
        assert scores(each) == f"test bleu_tokenized {100 * each.config['model']['keep']:.4g}"


def test_keys_of_other_tasks_can_be_varied(tmp_path):
    """A resolved config lacks them, because they have no effect."""
    config, words = tmp_path / "lm.py", ["--config.data.directory=there"]
    config.write_text(
        "from configs import lm\n\ndef get_config():\n    return lm.get_config('one_layer_mini')\n\n"
        "def sweep():\n    return [{'model.keep': 0.3, 'evaluation.buckets': 2}, {'model.keep': 0.4}]\n"
    )
    assert run(sweep.resolved(plans.make(str(config), "", words, tmp_path / "runs"))) == 0


def test_a_grown_sweep_keeps_its_folders_and_runs_only_what_is_new(planned, tmp_path, monkeypatch):
    assert run(planned()) == 0
    small = planned("grown")
    monkeypatch.setattr(plans, "_default_sweep", lambda module: "small")
    grown = plans.Plan(small.config, "small", small.shared, small.workdir, small.runs)
    assert run(grown) == 0
    assert starts(tmp_path / "runs") == dict.fromkeys([run.name for run in grown.runs], 1)
    assert len(finished(tmp_path / "runs")) == 6


def test_a_failing_run_is_reported_and_the_others_go_on(planned, tmp_path, caplog):
    caplog.set_level("INFO")
    assert run(planned("failing"), 1) == 1
    assert "keep=0.9 failed: training has diverged" in caplog.messages
    assert f"{tmp_path / 'runs'}: 1 failed, 1 finished" in caplog.messages
    assert run(planned("failing"), 1) == 1
    assert starts(tmp_path / "runs") == {"keep=0.9": 2, "keep=0.3": 1}, "only the failed run starts again"


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("sys.exit('error: too wide')", "too wide"),
        ("sys.exit(3)", "update 5"),
        ("os.kill(os.getpid(), 9)", "it was killed by signal 9; perhaps memory ran out; its last line: update 5"),
        ("os.kill(os.getpid(), 11)", "it was killed by signal 11; its last line: update 5"),
    ],
)
def test_a_killed_process_is_told_from_one_that_said_why_it_ended(tmp_path, end, why):
    log = tmp_path / "log"
    process = Process([sys.executable, "-c", f"import os, sys; print('update 5', flush=True); {end}"], log)
    while (said := process.ended()) is None:
        time.sleep(0.01)
    assert said == why
    assert problem(-9, log, log.stat().st_size) == "it was killed by signal 9; perhaps memory ran out"


def test_a_run_with_a_result_has_finished_however_its_process_ends(planned, tmp_path):
    """The first command says the same as a second one, which finds only the result."""
    for _ in range(2):
        assert run(planned("late")) == 0
        assert finished(tmp_path / "runs") == {"keep=0.8"}
    assert starts(tmp_path / "runs") == {"keep=0.8": 1}


@pytest.mark.parametrize("content", ["", '{"test": ', "[]", "{}"])
def test_a_damaged_result_is_made_again(planned, tmp_path, content):
    run(planned())
    (tmp_path / "runs" / "seed=2" / "result.json").write_text(content)
    assert not run(planned())
    assert starts(tmp_path / "runs") == {each.name: 1 + (each.name == "seed=2") for each in planned().runs}


@pytest.mark.parametrize("ends", [True, False])
def test_a_run_in_another_process_is_waited_for(planned, tmp_path, monkeypatch, caplog, ends):
    """Perhaps of a sweep that was killed. The run may end there, or stop with a checkpoint."""
    caplog.set_level("INFO")
    other = locked(tmp_path / "runs" / "seed=2", "trains in it")
    other.__enter__()

    def sleep(seconds, pause=time.sleep):
        if len(finished(tmp_path / "runs")) == 3 and (tmp_path / "runs" / "seed=2" / ".lock").exists():
            assert "seed=2" not in starts(tmp_path / "runs")
            if ends:
                (tmp_path / "runs" / "seed=2" / "result.json").write_text('{"test": {}}')
            other.__exit__(None, None, None)
        pause(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    assert run(planned(), 2) == 0 and ("seed=2" in starts(tmp_path / "runs")) != ends
    assert any("seed=2  under way in another process" in said for said in caplog.messages)


def test_a_run_waits_for_the_runs_that_it_reads(planned, tmp_path, caplog):
    caplog.set_level("INFO")
    assert run(planned("linked"), 4) == 1
    assert finished(tmp_path / "runs") == {"default", "dense,keep=0.3"}
    assert f"{tmp_path / 'runs'}: 2 finished, 2 failed" in caplog.messages
    assert "dense failed: it needs the run dense,keep=0.9, which failed" in caplog.messages
    assert not (tmp_path / "runs" / "dense").exists()


def test_a_folder_of_another_sweep_is_refused(planned, config, tmp_path):
    run(planned())
    before = (tmp_path / "runs" / "sweep.json").read_bytes()
    for other in (planned("failing"), plans.make(f"{config}:dense", "small", [], tmp_path / "runs")):
        with pytest.raises(UserError, match="holds another sweep"):
            run(other)
    with pytest.raises(UserError, match=r"data\.seed: 1 there, 2 here"):
        run(planned("small", "--config.data.seed=2"))
    assert (tmp_path / "runs" / "sweep.json").read_bytes() == before


def test_a_sweep_goes_on_with_what_may_change_in_its_runs(planned, tmp_path):
    """Here the text has moved, and no run has finished. Both the commands and the file of the sweep have the new place."""
    claim(planned("small", "--config.data.directory=here"))
    assert run(planned("small", "--config.data.directory=there", "--config.evaluation.beam=4")) == 0
    written = json.loads((tmp_path / "runs" / "sweep.json").read_text())
    assert written["shared"] == {"data.directory": "there", "evaluation.beam": 4}
    for each in written["runs"].values():
        assert "--config.data.directory=there" in each["words"] and each["config"]["data"]["directory"] == "there"
    for path in (tmp_path / "runs").glob("*/words"):
        assert "--config.data.directory=there --config.evaluation.beam=4" in path.read_text()


def test_a_run_that_never_began_leaves_the_sweep_with_its_mistake(planned, tmp_path):
    plan = planned()
    claim(plan)
    mended = dataclasses.replace(plan.runs[0], name="mended", folder=tmp_path / "runs" / "mended")
    claim(dataclasses.replace(plan, runs=[mended, *plan.runs[1:]]))
    recorded = json.loads((tmp_path / "runs" / "sweep.json").read_text())["runs"]
    assert recorded.keys() == {"mended", *(run.name for run in plan.runs[1:])}


def test_a_sweep_in_which_nothing_began_may_have_other_values(planned, tmp_path):
    for options, seed in ((("small", "--config.data.seed=7"), 7), ((), 1)):
        claim(planned(*options))
        recorded = json.loads((tmp_path / "runs" / "sweep.json").read_text())["runs"]
        assert {run["config"]["data"]["seed"] for run in recorded.values()} == {seed}


def test_what_a_finished_run_has_been_scored_by_stays(planned, tmp_path):
    """It is not trained or scored again, so its result would not say what the sweep says. Its text may move."""
    assert run(planned()) == 0
    before = (tmp_path / "runs" / "sweep.json").read_bytes()
    for key, values in (("evaluation.beam", "5 there, 4 here"), ("train.updates", "10 there, 4 here")):
        with pytest.raises(UserError, match=rf"config of .*, which has finished \({key}: {values}\)"):
            run(planned("small", f"--config.{key}=4"))
        assert (tmp_path / "runs" / "sweep.json").read_bytes() == before
    assert run(planned("small", "--config.data.directory=there", "--config.train.log_every=7")) == 0
    assert run(planned("small", "--config.data.directory=there", "--config.evaluation.max_tokens=7")) == 0
    assert starts(tmp_path / "runs") == dict.fromkeys(finished(tmp_path / "runs"), 1)


def test_a_key_that_only_the_new_config_has_is_compared_with_its_default(planned, tmp_path):
    """The sweep began with an earlier version of the program, which did not have the key."""
    plan = planned()
    assert run(plan) == 0

    def with_clip(clip):
        configs = [each.config | {"optim": each.config["optim"] | {"clip": clip}} for each in plan.runs]
        runs = [dataclasses.replace(each, config=config) for each, config in zip(plan.runs, configs, strict=True)]
        return dataclasses.replace(plan, runs=runs)

    with pytest.raises(UserError, match=r"which has finished \(optim\.clip: 0\.0 there, 0\.5 here\)"):
        run(with_clip(0.5))
    assert run(with_clip(0.0)) == 0
    next((tmp_path / "runs").glob("*/config.json")).write_text("{}")
    with pytest.raises(UserError, match=r"the config with which .* began cannot be read: the config lacks the section"):
        run(with_clip(0.0))


@pytest.mark.parametrize("runs", [None, [], {"default": 3}, {"default": {"words": []}}, {"other": {"config": []}}])
def test_a_damaged_file_of_a_sweep_is_said_and_left(planned, tmp_path, runs):
    claim(planned())
    path = tmp_path / "runs" / "sweep.json"
    damage = {"homes": [3]} if runs is None else {"runs": runs}
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"sweep\.json is damaged: `runs` must have .* restore the file"):
        claim(planned())
    assert path.read_bytes() == before


def test_the_folder_of_a_run_is_refused(planned, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "config.json").touch()
    with pytest.raises(UserError, match="is no folder of a sweep"):
        run(planned())


def test_a_file_is_no_folder_for_a_sweep(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file; give the name of a folder"):
        sweep.main(["--config=configs/toy.py", "--sweep=figures", f"--workdir={tmp_path / 'file'}"])
    with pytest.raises(UserError, match="--workdir: it is empty; give the name of a folder"):
        sweep.main(["--config=configs/toy.py", "--sweep=figures", "--workdir="])


def test_only_one_process_runs_a_sweep(planned, tmp_path):
    with (
        locked(tmp_path / "runs", "runs this sweep"),
        pytest.raises(UserError, match=f"process {os.getpid()} on .*runs this"),
    ):
        run(planned())


def test_a_dry_run_prints_what_would_run_and_touches_nothing(config, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweep, "resolved", lambda plan: plan)
    run(plans.make(str(config), "small", [], tmp_path / "runs"))
    (tmp_path / "runs" / "seed=2" / "result.json").unlink()
    before = sorted(tmp_path.rglob("*"))
    assert sweep.main([f"--config={config}", f"--workdir={tmp_path / 'runs'}", "--dry_run"]) == 0
    words = capsys.readouterr().out.split()
    assert words[:3] == ["python", "main.py", f"--config={config}"] and "--config.seed=2" in words
    assert words.count("main.py") == 1 and sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_two_tiny_runs_for_real(tmp_path):
    """A real sweep of two runs, which main.py trains."""
    from tests import tiny

    changes = {name: value for name, value in tiny.CHANGES.items() if name != "optim.lr"}
    changes |= {"train.updates": 0, "train.epochs": 3}
    config = tmp_path / "two.py"
    config.write_text(
        "from configs import toy\nfrom configs.sweeps import vary\nget_config = toy.get_config\n"
        "def sweep():\n    return vary('optim.lr', 0.01, 0.02)\n"
    )
    words = [f"--config.{name}={value}" for name, value in changes.items()]
    assert sweep.main([f"--config={config}", f"--workdir={tmp_path / 'runs'}", *words]) == 0
    planned = plans.make(str(config), "", words, tmp_path / "runs").runs
    slow, fast = (json.loads(run.paths.result_file.read_text()) for run in planned)
    for run, result in zip(planned, (slow, fast), strict=True):
        assert progress(run.paths, run.config["train"]).updates == result["steps"]
    assert (slow["config"]["optim"]["lr"], fast["config"]["optim"]["lr"]) == (0.01, 0.02)
    assert slow["valid"]["score"] != fast["valid"]["score"]


def test_a_run_of_another_config_in_the_place_of_a_run_is_refused(planned, tmp_path):
    """It was trained there by hand, or by another sweep of which only this folder is left; its own config tells, whatever is recorded."""
    assert run(planned()) == 0
    first = planned().runs[0]
    first.paths.config_file.write_text(json.dumps(first.config | {"seed": 7}))
    for recorded in (True, False):
        if not recorded:
            (tmp_path / "runs" / "sweep.json").unlink()
        with pytest.raises(
            UserError, match=rf"another config of {first.name}, which has finished \(seed: 7 there, 1 here\)"
        ):
            run(planned())


def test_a_sweep_is_the_same_under_another_name_of_its_folder(planned, config, tmp_path, monkeypatch):
    """Its runs read each other's folders, so their paths are in the configs."""
    (tmp_path / "here").mkdir()
    linked = dataclasses.replace(planned("linked"), runs=planned("linked").runs[:2])
    assert run(linked) == 0
    monkeypatch.chdir(tmp_path / "here")
    again = plans.make(str(config), "linked", [], Path("../runs"))
    assert run(dataclasses.replace(again, runs=again.runs[:2])) == 0
    (tmp_path / "runs").rename(tmp_path / "moved")
    for _ in range(2):  # what was recorded in the new place must still know the old one
        moved = plans.make(f"{config.parent}/./{config.name}", "linked", [], tmp_path / "moved")
        assert run(dataclasses.replace(moved, runs=moved.runs[:2])) == 0
    assert set(starts(tmp_path / "moved").values()) == {1}
