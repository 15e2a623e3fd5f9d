"""The scripts that start a run on several hosts, with stand-ins for SLURM's commands and for Python."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import ROOT

NODES, JOB = 3, 41234
PYTHON = '#!/bin/bash\necho "$@"\nexit ${CODE:-0}\n'
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
code=0
for process in $(seq 0 $((SLURM_NTASKS - 1))); do SLURM_PROCID=$process "$@" || code=$?; done
exit $code
"""
SCONTROL = """#!/bin/bash
if [ "$1" = show ]; then printf '%s\\n' first second third; else echo "scontrol $*"; fi
"""


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    for name, text in {"python": PYTHON, "srun": SRUN, "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_JOB_NODELIST": "first,second,third", "SLURM_JOB_ID": str(JOB), "SLURM_NTASKS": str(NODES)}
    return {**os.environ, **slurm, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": str(tmp_path / "python")}


def started(script: str, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = Path("launch") / script
    return subprocess.run(
        [path, *arguments], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=60
    )


def test_a_host_passes_its_number_and_all_arguments(environment):
    done = started("train_multihost.sh", "host:1234", "2", "1", "--workdir=a b", "--config=c", environment=environment)
    assert done.stdout == "main.py --distributed=host:1234 --processes=2 --process=1 --workdir=a b --config=c\n"


def test_a_host_without_its_number_is_refused(environment):
    done = started("train_multihost.sh", "host:1234", environment=environment)
    assert done.returncode == 2 and done.stderr.startswith("error: give HOST:PORT")


def test_every_node_starts_one_process_that_meets_the_others_at_the_first(environment):
    done = started("slurm/train_nodes.sh", "--workdir=runs/x", environment=environment)
    meet = f"first:{20000 + JOB % 20000}"
    assert done.stdout.splitlines() == [
        f"main.py --distributed={meet} --processes={NODES} --process={number} --workdir=runs/x"
        for number in range(NODES)
    ]


@pytest.mark.parametrize("script", ["slurm/train_nodes.sh", "slurm/train.sh"])
@pytest.mark.parametrize(("code", "queued"), [(140, True), (143, True), (2, False), (0, False)])
def test_an_interrupted_job_is_queued_again(environment, script, code, queued):
    one = {**environment, "SLURM_NTASKS": "1", "SLURM_PROCID": "0", "CODE": str(code)}
    done = started(script, "--workdir=a b", environment=one)
    assert done.returncode == code and "--workdir=a b\n" in done.stdout
    assert (f"scontrol requeue {JOB}" in done.stdout) == queued
