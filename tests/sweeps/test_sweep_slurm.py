"""Sweeps on SLURM: commands that stand in for a cluster's run what is submitted, on this machine."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from one_layer.commands import sweep
from one_layer.sweeps import plan as plans
from one_layer.system.errors import UserError
from tests import ROOT, until

PROGRAM = Path(__file__).with_name("sweep_program.py")
STAND_IN = {
    # Keeps a copy of the batch script, as the real one does, and runs it for each task of the array, in the background.
    "sbatch": """#!/usr/bin/env python3
import os, re, subprocess, sys
text = open(sys.argv[-1]).read()
tasks = re.search(r"--array=0-(\\d+)", text)
numbers = range(int(tasks[1]) + 1) if tasks else [None]
print("Submitted batch job 77", flush=True)
if os.fork() == 0:
    os.setsid()
    for stream in (1, 2):  # whoever called sbatch waits until these are closed
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    for number in numbers:
        more = {} if number is None else {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": str(number)}
        environment = os.environ | {"SLURM_JOB_ID": "77"} | more
        subprocess.run(["bash", "-s"], input=text.encode(), env=environment)
""",
    # Leaves out its own options, which all begin with --, and their values.
    "srun": """#!/usr/bin/env python3
import subprocess, sys
words = sys.argv[1:]
while words and words[0].startswith("--"):
    words = words[1:] if words[0] == "--unbuffered" else words[2:]
sys.exit(subprocess.run(words).returncode)
""",
    "sacct": "#!/bin/sh\necho 'JobID|State|NodeList'\n",
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Commands of SLURM on PATH that run what is submitted, on this machine."""
    for name, text in STAND_IN.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def plan(planned):
    """A sweep of two runs, of which the first fails."""
    return planned("failing")


def slurm_launcher(tmp_path, monkeypatch, *options):
    from one_layer.sweeps import slurm

    root = tmp_path / "tree"  # with the program in the place of main.py
    if not root.exists():
        for name in ("configs", "one_layer"):
            (root / name).mkdir(parents=True)
        (root / "main.py").write_text(PROGRAM.read_text())
        for file in code_of("one_layer"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text((ROOT / file).read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(slurm, "ROOT", root)
    return slurm.SlurmLauncher(tmp_path / "runs", 2, list(options))


def code_of(folder):
    return [str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.py")]


def test_slurm_runs_a_copy_of_the_tree(plan, tmp_path, monkeypatch, cluster, caplog):
    caplog.set_level("INFO")
    launcher = slurm_launcher(tmp_path, monkeypatch, "timeout_min=5", "partition=gpu")
    assert sweep.run_sweep(plan, launcher) == 1
    assert f"{tmp_path / 'runs'}: 1 failed, 1 finished" in caplog.messages
    assert "keep=0.9 failed: training has diverged" in caplog.messages
    assert "training has diverged" in (tmp_path / "runs" / "keep=0.9.log").read_text()
    script = next((tmp_path / "runs" / "slurm").glob("*.sh")).read_text()
    assert "--array=0-1%2" in script and "--partition=gpu" in script and "--time=5" in script
    (copy,) = (tmp_path / "runs").glob("code-*")
    assert (copy / "main.py").read_text() == PROGRAM.read_text() and str(copy) in script
    assert json.loads((tmp_path / "runs" / "slurm.json").read_text()) == {"keep=0.9": "77_0", "keep=0.3": "77_1"}


def test_jobs_that_still_wait_are_not_submitted_again(plan, tmp_path, monkeypatch, cluster):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho one >> submitted\necho Submitted batch job 78\n")
    (tmp_path / "bin" / "sacct").write_text("#!/bin/sh\nprintf 'JobID|State|NodeList\\n78_[0-1]|PENDING|None\\n'\n")
    launcher = slurm_launcher(tmp_path, monkeypatch)
    for _ in range(2):
        jobs = launcher.start(plan.runs)
        assert [job.ended() for job in jobs] == [None, None]
    assert (tmp_path / "submitted").read_text() == "one\n"


def test_jobs_that_the_accounting_has_forgotten_are_submitted_again(plan, tmp_path, monkeypatch, cluster):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho one >> submitted\necho Submitted batch job 79\n")
    submitted = tmp_path / "submitted"
    launcher = slurm_launcher(tmp_path, monkeypatch)
    for _ in range(2):
        assert [job.ended() for job in launcher.start(plan.runs)] == [None, None]
    assert submitted.read_text() == "one\n", "the accounting may not know a new job yet"
    for path in (tmp_path / "runs" / "slurm").glob("*_submitted.pkl"):
        os.utime(path, (0, 0))
    (tmp_path / "bin" / "sacct").write_text("#!/bin/sh\nexit 1\n")
    launcher.start(plan.runs)
    assert submitted.read_text() == "one\n", "nobody knows, without an accounting"
    (tmp_path / "bin" / "sacct").write_text(STAND_IN["sacct"])
    launcher.start(plan.runs)
    assert submitted.read_text() == "one\none\n"


def test_a_job_that_never_wrote_anything_is_reported_with_slurm_s_word(plan, tmp_path, monkeypatch, cluster):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 80\n")
    (tmp_path / "bin" / "sacct").write_text(
        "#!/bin/sh\nprintf 'JobID|State|NodeList\\n80_[0-1]|OUT_OF_MEMORY|one\\n'\n"
    )
    launcher = slurm_launcher(tmp_path, monkeypatch)
    job = launcher.start(plan.runs)[0]
    monkeypatch.setattr(job._job, "_results_timeout_s", 0)
    assert job.ended().startswith("its job ended without a result (SLURM says OUT_OF_MEMORY); ")


def test_a_job_reads_the_copy_of_a_config_where_there_is_one(tmp_path):
    from one_layer.sweeps import slurm

    root, link = tmp_path / "tree", tmp_path / "link"
    for folder in ("configs", "one_layer"):
        (root / folder).mkdir(parents=True)
    (root / "main.py").touch()
    link.symlink_to(root)
    for file in (root / "configs" / "ours.py", root / "mine.py", tmp_path / "small.py"):
        file.touch()
    code = slurm.copy_code(root, tmp_path / "runs")
    copied = code / "configs" / "ours.py"
    assert copied.is_file()
    read = {
        root / "configs" / "ours.py": copied,
        link / "configs" / "ours.py": copied,
        root / "mine.py": root / "mine.py",
        root / "configs" / ".." / "mine.py": root / "mine.py",
        root / ".." / "small.py": tmp_path / "small.py",
    }
    for given, wanted in read.items():
        run = plans.Run("run", tmp_path / "run", {}, {}, [f"--config={given}:dense", "--config.seed=2"])
        assert slurm._words(run, root, code)[2:] == [f"--config={wanted}:dense", "--config.seed=2"]


def test_a_job_whose_time_is_over_stops_its_run_and_can_go_on(tmp_path):
    """As submitit does it: from a signal handler, while the job waits for its run."""
    code = f"""
import pickle, signal, sys
from pathlib import Path
from one_layer.sweeps.slurm import Command
words = [sys.executable, {str(PROGRAM)!r}, "--workdir={tmp_path / "run"}", "--config.train.updates=0"]
command = Command(words, Path({str(tmp_path / "log")!r}))
def over(number, frame):
    later = command.checkpoint()
    assert later.function.words == words and later.function.log == command.log
    sys.exit(77)
signal.signal(signal.SIGUSR2, over)
command()
"""
    job = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    assert until((tmp_path / "run" / "ready").exists)
    job.send_signal(signal.SIGUSR2)
    assert job.wait(timeout=60) == 77
    assert (tmp_path / "run" / "saved").read_text() == str(int(signal.SIGUSR2))


def test_slurm_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="srun"):
        slurm_launcher(tmp_path, monkeypatch)


def test_what_sbatch_refuses_is_said_in_one_sentence(plan, tmp_path, monkeypatch, cluster):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition: nope' >&2\nexit 1\n")
    launcher = slurm_launcher(tmp_path, monkeypatch, "partition=nope")
    with pytest.raises(UserError, match=r"^--launcher=slurm: .*invalid partition: nope"):
        launcher.start(plan.runs)
    assert not (tmp_path / "runs" / "slurm.json").exists()


def test_slurm_s_options_are_checked(tmp_path, monkeypatch, cluster):
    with pytest.raises(UserError, match="--slurm=setup=x cannot be given: the sweep has its own"):
        slurm_launcher(tmp_path, monkeypatch, "setup=x")
    with pytest.raises(UserError, match="--slurm=open-mode=x cannot be given: the sweep needs its own"):
        slurm_launcher(tmp_path, monkeypatch, "open-mode=x")
    with pytest.raises(UserError, match="has no value"):
        slurm_launcher(tmp_path, monkeypatch, "partition")


def test_options_of_sbatch_without_a_value_reach_it(plan, tmp_path, monkeypatch, cluster):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\ncp $1 submitted\necho Submitted batch job 78\n")
    slurm_launcher(tmp_path, monkeypatch, "exclusive", "--no-requeue").start(plan.runs)
    assert {"#SBATCH --exclusive", "#SBATCH --no-requeue"} <= {*(tmp_path / "submitted").read_text().split("\n")}


def test_only_what_reads_back_as_written_is_a_number():
    from one_layer.sweeps import slurm

    options = {"account": "00123", "partition": "\u00b2", "nodelist": "\u0663", "gpus_per_node": "2", "mem_gb": "0"}
    found = slurm._parameters([f"{name}={value}" for name, value in options.items()])
    numbers = {"gpus_per_node": 2, "mem_gb": 0}
    assert found == {"slurm_account": "00123", "slurm_partition": "\u00b2", "slurm_nodelist": "\u0663"} | numbers
    others = slurm._parameters(["reservation=x", "ntasks_per_core=1"])  # which submitit does not know, but sbatch
    assert others == {"slurm_additional_parameters": {"reservation": "x", "ntasks-per-core": 1}}


def test_a_dry_run_checks_slurm_s_options_and_leaves_nothing(tmp_path, cluster, capsys):
    words = [
        "--config=configs/toy.py",
        "--sweep=short",
        f"--workdir={tmp_path / 'runs'}",
        "--dry_run",
        "--launcher=slurm",
    ]
    with pytest.raises(UserError, match="--slurm=nodes has no value"):
        sweep.main([*words, "--slurm=nodes"])
    assert sweep.main([*words, "--slurm=partition=gpu"]) == 0
    assert capsys.readouterr().out.count("main.py") == 12 and not (tmp_path / "runs").exists()
