"""Sweeps whose runs are trained together. Small programs stand in for main.py and the command `population`, so that nothing is trained."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from one_layer.commands import sweep
from one_layer.sweeps.plan import Plan, Run
from one_layer.sweeps.populations import PopulationLauncher, describe
from one_layer.system.errors import UserError
from tests import ROOT, tiny, until

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
KEEPS = [{"model.keep": keep} for keep in (0.1, 0.3, 0.5, 0.7)]


@pytest.fixture
def planned(tmp_path):
    """Plans a sweep of runs with these changes, named after them, in the folder `runs`."""

    def plan(*changes):
        runs = []
        for each in changes:
            name = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in each.items())
            words = [f"--workdir={tmp_path / 'runs' / name}", *(f"--config.{key}={each[key]}" for key in each)]
            runs.append(Run(name, tmp_path / "runs" / name, each, tiny.run(each).raw, words))
        return Plan("configs/toy.py", "", {}, tmp_path / "runs", runs)

    return plan


def run(plan, jobs=1, members=16):
    launcher = PopulationLauncher([sys.executable, str(HERE / "sweep_program.py")], jobs, members)
    return sweep.run_sweep(plan, launcher)


def together(workdir):
    path = workdir / "together"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finished(plan):
    return {run.name for run in plan.runs if run.paths.result_file.exists()}


def test_runs_that_differ_in_numbers_are_trained_together(planned, tmp_path):
    plan = planned(*KEEPS, {"seed": 2}, {"optim.lr": 0.02})
    assert run(plan) == 0
    assert together(tmp_path / "runs") == [[each.name for each in plan.runs]]


def test_no_more_than_members_at_a_time(planned, tmp_path):
    assert run(planned(*KEEPS, {"seed": 2}), members=2) == 0
    names = [["keep=0.1", "keep=0.3"], ["keep=0.5", "keep=0.7"]]
    assert together(tmp_path / "runs") == names, "and the last one alone, by main.py"
    assert (tmp_path / "runs" / "seed=2" / "result.json").exists()


def test_other_programs_form_groups_of_their_own(planned, tmp_path):
    wide = [{**keep, "model.ffn": 64} for keep in KEEPS[:2]]
    plan = planned(KEEPS[0], wide[0], KEEPS[1], wide[1], {"model.dropout": 0.3})
    assert run(plan) == 0
    assert together(tmp_path / "runs") == [["keep=0.1", "keep=0.3"], ["keep=0.1,ffn=64", "keep=0.3,ffn=64"]]
    assert finished(plan) == {each.name for each in plan.runs}
    lines = describe(plan.runs, 16)
    assert "5 runs in 3 groups of 2, 2, 1" in lines[0]
    assert "the groups differ in model.dropout, model.ffn;" in lines[1]


def test_a_failing_member_is_reported_and_tried_again_alone(planned, tmp_path, caplog):
    caplog.set_level("INFO")
    plan = planned(*KEEPS, {"model.keep": 0.9})
    assert run(plan) == 1
    assert "keep=0.9 failed: training has diverged" in caplog.messages
    assert finished(plan) == {each.name for each in plan.runs} - {"keep=0.9"}
    assert run(plan) == 1
    assert len(together(tmp_path / "runs")) == 1 and (tmp_path / "runs" / "keep=0.9" / "starts").exists()


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("sys.exit('error: out of memory')", "out of memory"),
        ("os.kill(os.getpid(), 9)", "it was killed by signal 9; perhaps memory ran out"),
    ],
)
def test_a_population_that_ends_without_results_fails_as_a_whole(planned, tmp_path, caplog, end, why):
    caplog.set_level("INFO")
    broken = tmp_path / "broken.py"
    broken.write_text(f"import os, sys; {end}")
    launcher = PopulationLauncher([sys.executable, str(broken)], 1, 16)
    assert sweep.run_sweep(planned(*KEEPS), launcher) == 1
    assert {f"keep={keep} failed: {why}" for keep in (0.1, 0.3, 0.5, 0.7)} <= set(caplog.messages)


def test_a_signal_reaches_a_population_once(planned, tmp_path):
    plan = planned(*({**keep, "train.updates": 1000} for keep in KEEPS))

    def interrupt():
        until((tmp_path / "runs" / "ready").exists)
        os.kill(os.getpid(), 15)

    threading.Thread(target=interrupt).start()
    assert run(plan) == 128 + 15
    assert (tmp_path / "runs" / "signals").read_text() == "15\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--members=2"], "--members=2 is only used with --vmap"),
        (["--vmap", "--launcher=slurm"], "--vmap trains on this machine"),
        (["--slurm=partition=gpu"], "--slurm=partition=gpu is only used with --launcher=slurm"),
        (["--vmap", "--members=0"], "^--members: '0' is not an integer of at least 1; --help tells of all options$"),
        (["--jobs=two"], "^--jobs: 'two' is not an integer of at least 1; --help tells of all options$"),
        (["--vmap", "--distributed=127.0.0.1:1234", "--processes=2"], "a sweep trains each run in one process"),
    ],
)
def test_options_that_do_not_fit_together(tmp_path, words, message):
    with pytest.raises(UserError, match=message):
        sweep.main(["--config=configs/toy.py", f"--workdir={tmp_path / 'runs'}", *words, "--dry_run"])


def test_stacked_products_are_computed_rightly(tmp_path):
    """Without the flag that a population sets, jaxlib 0.10.2 gives 1.0654e9 here on a CPU (jax issue 39103)."""
    code = """
import one_layer.training.population
from one_layer.commands import population

def computed(entries, interruption):
    import jax, jax.numpy as jnp
    of_one = lambda i: jnp.sum((jnp.eye(3) @ jnp.array([i, 0, 0])) ** 2)
    print(float(jax.jit(jax.vmap(of_one))(jnp.arange(2.0**15 + 1))[-1]))
    return {}

one_layer.training.population.train_together = computed
population._entries = lambda workdir, names: []
population.main(["--workdir=.", "a run"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) == 2.0**30
