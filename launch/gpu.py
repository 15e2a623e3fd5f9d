"""Measures on an accelerator whatever has not been measured yet, for at most some minutes, and can be run again to go on.

    python launch/gpu.py --data=DIR [--minutes=9] [--out=results/gpu] [--runs=runs/gpu] [--only=NAME,...] [--list]

DIR holds the folders multi30k_bpe, iwslt14, europarl_iten and pair_cls with tokenised text. The jobs are those of `launch/gpu_jobs.py`,
in order. Each writes what its commands found into OUT/NAME.json. A job whose commands have all succeeded is then skipped; one of which
some failed is tried again, after the jobs without a file. When the time is over, the job that runs is stopped; if it trains, its runs in
--runs go on from their checkpoints the next time. The exit code is 1 if a command failed.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch import command
from launch.gpu_jobs import JOBS, Job
from launch.sweeps.jobs import END_WITH_PARENT
from one_layer.runs.commit import commit
from one_layer.system.errors import UserError
from one_layer.system.files import json_object, write_atomically

log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[1]
_SAVING = 45.0  # seconds that a stopped run may take to save its checkpoint
_ABOUT = """
import json, jax
device = jax.devices()[0]
print(json.dumps([device.platform, device.device_kind, jax.__version__, device.client.platform_version]))
"""


class Clock:
    """The time that is left. Commands end when it is over."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def run(self, words: Sequence[str]) -> int | None:
        """Runs a command. Returns its exit code; None if the time was over, and then the command had time to save."""
        if self.left() <= 0:
            return None
        log.info("%s", shlex.join(words))
        process = subprocess.Popen(words, cwd=_ROOT, preexec_fn=END_WITH_PARENT)
        try:
            return process.wait(max(1.0, self.left()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_SAVING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return None


def finished(job: Job, out: Path) -> bool:
    """Whether the job's file has the results of all its commands. Raises: UserError for a damaged file."""
    file = _file(job, out)
    if not file.exists():
        return False
    try:
        results = json_object(file).get("results")
        if not isinstance(results, dict):
            raise ValueError("it has no results")
    except ValueError as error:
        raise UserError(f"{file} is damaged ({error}); delete it, and its job writes it again") from None
    return {step.name for step in job.steps} <= results.keys()


def _file(job: Job, out: Path) -> Path:
    return out / f"{job.name}.json"


def measure(job: Job, clock: Clock, out: Path, about: dict[str, Any]) -> bool:
    """Runs the commands of a job that have not succeeded yet, and writes its file if one of them has succeeded by then.

    The file names the commands that failed. It is not written if the time is over before all have run.
    Returns: whether no command failed.
    """
    started, failed = time.monotonic(), list[dict[str, Any]]()
    for step in job.steps:
        if step.done():
            continue
        code = clock.run(step.words)
        if code is None:
            log.info("%s: the time is over; it goes on the next time", job.name)
            return not failed
        if code:
            failed.append({"command": shlex.join(step.words), "exit": code})
    found = {step.name: step.found() for step in job.steps if step.done()}
    if not found:
        log.warning("%s: no command succeeded", job.name)
        return False
    result = {
        "about": job.about,
        **about,
        "results": found,
        "failed": failed,
        "last_seconds": time.monotonic() - started,
    }
    write_atomically(_file(job, out), json.dumps(result, indent=1) + "\n")
    if finished(job, out):
        log.info("%s: done", job.name)
    else:
        log.warning("%s: %d of its %d commands have succeeded", job.name, len(found), len(job.steps))
    return not failed


def device() -> dict[str, Any]:
    """The accelerator and the versions, asked in a process of its own, because a process that holds the accelerator's memory blocks it."""
    done = subprocess.run([sys.executable, "-c", _ABOUT], capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise UserError(
            f"JAX finds no device ({done.stderr.strip().splitlines()[-1]:.200}); install requirements-cuda.txt"
        )
    platform, kind, version, runtime = json.loads(done.stdout)
    return {
        "platform": platform,
        "device": kind,
        "jax": version,
        "runtime": runtime.splitlines()[0],
        "commit": commit(),
    }


def _minutes(text: str) -> float:
    """Parses an option's value as a number above 0. Raises: ArgumentTypeError, which argparse reports, for anything else."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return minutes


def main() -> int:
    """Runs the command line. Returns: the exit code: 0, or 1 if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the corpora")
    parser.add_argument("--minutes", type=_minutes, default=9.0, help="when to stop")
    parser.add_argument("--out", type=Path, default=_ROOT / "results" / "gpu", help="the folder for the results")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs") / "gpu", help="the folder for runs and their checkpoints"
    )
    parser.add_argument("--only", default="", help="names of jobs, separated by commas; all by default")
    parser.add_argument("--list", action="store_true", help="only print the jobs and their commands")
    given = parser.parse_args()
    jobs = [make(given.data.absolute(), given.runs.absolute(), given.out.absolute()) for make in JOBS]
    names = [name for name in given.only.split(",") if name]
    if unknown := [name for name in names if name not in {job.name for job in jobs}]:
        raise UserError(f"--only={unknown[0]!r:.60} is no job; known are {', '.join(job.name for job in jobs)}")
    jobs = [job for job in jobs if not names or job.name in names]
    if given.list:
        for job in jobs:
            state = "done" if finished(job, given.out) else "open"
            print(
                f"{job.name} ({state}): {job.about}", *(f"    {shlex.join(step.words)}" for step in job.steps), sep="\n"
            )
        return 0
    if not given.data.is_dir():
        raise UserError(f"--data={given.data} is no folder; give the one that holds multi30k_bpe and the other corpora")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(given.runs.absolute() / "compiled"))
    about, clock = device(), Clock(given.minutes)
    good = True
    for job in sorted(jobs, key=lambda job: _file(job, given.out).exists()):  # tried again last: it may fail again
        if clock.left() > 0 and not finished(job, given.out):
            good &= measure(job, clock, given.out, about)
    return 0 if good else 1


if __name__ == "__main__":
    command.run(lambda: sys.exit(main()))
