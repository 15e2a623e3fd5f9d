"""The list of what is measured on an accelerator, and the clock that stops it; without an accelerator."""

from __future__ import annotations

import ast
import importlib
import json
import signal
import subprocess
import sys
import time

import pytest

from launch import gpu, gpu_jobs
from launch.gpu_jobs import JOBS, Job, Result, Step, Sweep
from one_layer.runs.records import flatten
from one_layer.runs.settings import resolve
from tests import ROOT

ABOUT = {"platform": "cpu", "device": "none"}


@pytest.fixture
def jobs(tmp_path):
    return [make(tmp_path / "data", tmp_path / "runs", tmp_path / "out") for make in JOBS]


def step(folder, name: str, code: str) -> Step:
    """A command that runs `code`, in which `done` writes the file."""
    file = folder / f"{name}.json"
    done = f"done = lambda: open({str(file)!r}, 'w').write('[1]')"
    return Step(name, [sys.executable, "-c", f"import signal, sys, time\n{done}\n{code}"], file)


def test_every_job_has_a_file_and_every_step_a_place_of_its_own(jobs):
    assert len({job.name for job in jobs}) == len(jobs) == 10
    places = [each.file for job in jobs for each in job.steps]
    assert len(set(places)) == len(places)


def test_every_training_run_has_a_config_that_is_accepted(jobs):
    """With the overrides of its command line, each of which must be a key of the config."""
    runs = [each for job in jobs for each in job.steps if isinstance(each, Result)]
    assert len(runs) > 50
    for words in {tuple(each.words) for each in runs}:
        given = dict(word.removeprefix("--").split("=", 1) for word in words[2:])
        module, _, argument = given["config"].removeprefix("configs/").partition(".py:")
        config = importlib.import_module(f"configs.{module}").get_config(argument)
        plain = {name.removeprefix("config."): value for name, value in given.items() if name.startswith("config.")}
        assert plain.keys() <= flatten(config.to_dict()).keys()
        numbers = {
            name: ast.literal_eval(value) for name, value in plain.items() if value[:1].isdigit() or value[:1] == "("
        }
        config.update_from_flattened_dict(plain | numbers)
        resolve(config.to_dict())


def test_a_job_of_which_a_command_failed_is_written_and_tried_again(tmp_path):
    flaw, out = tmp_path / "flaw", tmp_path / "job.json"
    flaw.touch()
    bad = step(tmp_path, "bad", f"import os\nif os.path.exists({str(flaw)!r}): sys.exit(3)\ndone()")
    job = Job("job", "two commands", [step(tmp_path, "good", "done()"), bad])
    assert not gpu.finished(job, tmp_path)
    assert not gpu.measure(job, gpu.Clock(1), tmp_path, ABOUT)
    found = json.loads(out.read_text("utf-8"))
    assert found["results"] == {"good": [1]} and found["device"] == "none"
    assert [each["exit"] for each in found["failed"]] == [3]
    assert not gpu.finished(job, tmp_path)
    flaw.unlink()
    assert gpu.measure(job, gpu.Clock(1), tmp_path, ABOUT)
    found = json.loads(out.read_text("utf-8"))
    assert found["results"] == {"good": [1], "bad": [1]} and not found["failed"]
    assert gpu.finished(job, tmp_path)


def test_jobs_of_which_nothing_is_known_come_before_those_that_are_tried_again(monkeypatch, tmp_path):
    """So that a command that always fails does not use up the time of all others."""
    started = tmp_path / "started"
    note = f"open({str(started)!r}, 'a').write"
    jobs = [
        Job("done", "", [step(tmp_path, "one", f"{note}('1'); done()")]),
        Job("failing", "", [step(tmp_path, "two", "done()"), step(tmp_path, "three", f"{note}('3'); sys.exit(1)")]),
        Job("new", "", [step(tmp_path, "four", f"{note}('4'); done()")]),
    ]
    for job in jobs[:2]:
        gpu.measure(job, gpu.Clock(1), tmp_path, ABOUT)
    monkeypatch.setattr(gpu, "JOBS", [lambda *folders, job=job: job for job in jobs])
    monkeypatch.setattr(gpu, "device", lambda: ABOUT)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    words = [f"--data={tmp_path}", f"--out={tmp_path}", f"--runs={tmp_path}", "--minutes=1"]
    monkeypatch.setattr(sys, "argv", ["gpu.py", *words])
    assert gpu.main() == 1, "a command failed"
    assert started.read_text("utf-8") == "1343"


def test_a_job_without_success_writes_nothing(tmp_path):
    job = Job("job", "one command", [step(tmp_path, "bad", "sys.exit(3)")])
    assert not gpu.measure(job, gpu.Clock(1), tmp_path, ABOUT)
    assert not (tmp_path / "job.json").exists() and not gpu.finished(job, tmp_path)


def test_a_command_that_has_succeeded_is_not_repeated(tmp_path):
    once = step(tmp_path, "once", "done(); sys.exit(1)")
    once.file.write_text("[2]", "utf-8")
    gpu.measure(Job("job", "", [once]), gpu.Clock(1), tmp_path, ABOUT)
    assert json.loads((tmp_path / "job.json").read_text("utf-8"))["results"] == {"once": [2]}


@pytest.mark.slow
def test_when_the_time_is_over_the_command_may_save_and_the_job_stays_open(tmp_path):
    saving = "signal.signal(signal.SIGTERM, lambda *_: (open({!r}, 'w').write('saved'), sys.exit(0)))\ntime.sleep(60)"
    saved = tmp_path / "saved"
    job = Job("job", "", [step(tmp_path, "long", saving.format(str(saved))), step(tmp_path, "next", "done()")])
    gpu.measure(job, gpu.Clock(0.05), tmp_path, ABOUT)
    assert saved.read_text("utf-8") == "saved"
    assert not (tmp_path / "next.json").exists() and not (tmp_path / "job.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence"), [(["--only=nothing"], "is no job; known are tests"), ([], "is no folder")]
)
def test_wrong_arguments_get_one_sentence(monkeypatch, tmp_path, words, sentence):
    monkeypatch.setattr(sys, "argv", ["gpu.py", f"--data={tmp_path / 'missing'}", *words])
    with pytest.raises(gpu.UserError, match=sentence):
        gpu.main()


@pytest.mark.parametrize("text", ['{"results": {', "[]", "{}", '{"results": 3}'])
def test_a_damaged_file_of_results_is_named(monkeypatch, tmp_path, text):
    (tmp_path / "qqp.json").write_text(text, "utf-8")
    monkeypatch.setattr(sys, "argv", ["gpu.py", f"--data={tmp_path}", f"--out={tmp_path}", "--list"])
    with pytest.raises(gpu.UserError, match=r"qqp\.json is damaged \(.+\); delete it, and its job writes it again"):
        gpu.main()


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        (Step, "a.json", "{"),
        (Step, "a.jsonl", "{}\n{"),
        (Result, "result.json", "[1]"),
        (Sweep, "results.csv", "name\nfirst\n"),
        (gpu_jobs.Tests, "tests.xml", "<testsuite>"),
    ],
)
def test_a_damaged_file_of_one_command_is_named(tmp_path, kind, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    job = Job("job", "", [kind("step", ["false"], tmp_path / name)])
    with pytest.raises(gpu.UserError, match=rf"{name} is damaged \(.+\); delete it, and its command runs again"):
        gpu.measure(job, gpu.Clock(1), tmp_path, ABOUT)
    assert not (tmp_path / "job.json").exists()


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "nine"])
def test_minutes_in_which_nothing_would_run_are_refused(monkeypatch, tmp_path, capsys, minutes):
    monkeypatch.setattr(gpu, "JOBS", ())
    monkeypatch.setattr(gpu, "device", lambda: ABOUT)
    monkeypatch.setattr(sys, "argv", ["gpu.py", f"--data={tmp_path}", f"--minutes={minutes}"])
    with pytest.raises(SystemExit, match="2"):
        gpu.main()
    assert f"'{minutes}' is not a number of minutes above 0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_command_is_stopped_with_the_program_that_started_it(tmp_path):
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    code = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (open({str(saved)!r}, "w").close(), sys.exit()))
open({str(ready)!r}, "w").close()
time.sleep(60)
"""
    program = f"from launch import gpu; gpu.Clock(1).run({[sys.executable, '-c', code]!r})"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    _wait(ready)
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    _wait(saved)


def _wait(path):
    end = time.monotonic() + 50
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.05)
