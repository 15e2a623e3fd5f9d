"""Starts the runs of a sweep as jobs of a SLURM cluster, through submitit.

submitit imports code by name when a job starts, perhaps long after it was submitted. So each submission works on a copy of the code,
in the sweep's folder, and later changes of the working tree change no waiting job.
"""

import contextlib
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError
from submitit.helpers import Checkpointable, DelayedSubmission

from one_layer.runs.commit import COMMIT_FILE, commit
from one_layer.runs.paths import RunPaths, read_object
from one_layer.runs.progress import log_file
from one_layer.sweeps.jobs import Job, Launcher, problem, size
from one_layer.sweeps.plan import ROOT, Run, program
from one_layer.system.errors import UserError
from one_layer.system.files import write_json

# In a clone of the repository; an installed package has its configs inside.
_CODE = ("main.py", "configs", "one_layer") if (ROOT / "main.py").is_file() else ("one_layer",)
_RAISED = "RuntimeError: "
_AS_OFTEN_AS_NEEDED = 10**6  # times that a job whose time is over is queued again; submitit would do it three times
_NEW = 60.0  # seconds in which the accounting need not know a job yet
_SHARED = ("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
_OWN = {
    "array_parallelism": "--jobs says how many runs work at the same time",
    "setup": "the sweep has its own; load modules before the command, whose environment the jobs have",
    "additional_parameters": "give each option of sbatch by its name",
    **dict.fromkeys(("array", "signal", "output", "error", "open_mode", ""), "the sweep needs its own"),
}


class Command(Checkpointable):
    """One run as a job. When SLURM's time is over, the run saves a checkpoint, and the job is queued again and goes on."""

    def __init__(self, words: list[str], log: Path) -> None:
        self.words, self.log = words, log
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> None:
        """Trains. Raises: RuntimeError that says why, if the run fails."""
        begin = size(self.log)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        if code := self._process.wait():
            raise RuntimeError(problem(code, self.log, begin))

    def checkpoint(self) -> DelayedSubmission:
        """Stops the run, which saves a checkpoint first, and gives what continues it."""
        if self._process is not None:
            # submitit calls this from a signal handler, in the middle of the wait above, whose lock a second wait would wait for.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._process.pid, signal.SIGUSR2)
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        return DelayedSubmission(Command(self.words, self.log))


class SlurmLauncher(Launcher):
    """Submits the runs that can begin as an array of jobs, of which at most `parallel` work at the same time.

    `options` are KEY=VALUE for submitit, or for sbatch by its own names. Raises: UserError where no SLURM is found, and for options
    that are unknown.
    """

    detached = True

    def __init__(self, workdir: Path, parallel: int, options: list[str]) -> None:
        self._workdir = workdir
        self._record, self._folder = workdir / "slurm.json", workdir / "slurm"
        self._code: Path | None = None  # the copy, which all runs of this command have
        logging.getLogger("submitit").setLevel(logging.ERROR)
        try:
            self._executor = submitit.AutoExecutor(
                folder=self._folder, cluster="slurm", slurm_max_num_timeout=_AS_OFTEN_AS_NEEDED
            )
            self._executor.update_parameters(
                **{"name": workdir.absolute().name, **_parameters(options)}, slurm_array_parallelism=parallel
            )
        except (RuntimeError, NameError, ValueError, TypeError, AssertionError) as error:
            raise UserError(f"--launcher=slurm: {' '.join(str(error).split())}") from None

    def choose(self, ready: list[Run], working: int) -> list[Run]:
        """All of them: each array keeps to `parallel` by itself, also when nobody watches any more."""
        return ready

    def start(self, runs: list[Run]) -> list[Job]:
        """Submits the runs as one array, except those whose jobs of an earlier command still wait or work."""
        submitted = read_object(self._record) if self._record.exists() else {}
        jobs: dict[str, Any] = {
            run.name: submitit.SlurmJob(self._folder, submitted[run.name]) for run in runs if run.name in submitted
        }
        jobs = {name: job for name, job in jobs.items() if not (job.done() or _forgotten(job))}
        new = [run for run in runs if run.name not in jobs]
        if new:
            code = self._code = self._code or copy_code(ROOT, self._workdir)
            # The jobs' relative paths are those of this command; modules come from the copy.
            setup = [f"cd {shlex.quote(str(Path.cwd()))}", f"export PYTHONPATH={shlex.quote(str(code))}"]
            self._executor.update_parameters(slurm_setup=setup)
            commands = [Command(_words(run, ROOT, code), log_file(run.folder).absolute()) for run in new]
            try:
                with self._executor.batch():
                    sent = [self._executor.submit(command) for command in commands]
            except FailedJobError as error:  # what sbatch said
                raise UserError(f"--launcher=slurm: {' '.join(str(error).split())}") from None
            jobs |= {run.name: job for run, job in zip(new, sent, strict=True)}
            ids = {name: job.job_id for name, job in jobs.items()}
            write_json(self._record, {**submitted, **ids})
        return [_Submitted(jobs[run.name], run.paths) for run in runs]


class _Submitted(Job):
    """A job of the cluster, which no signal of the sweep reaches: `scancel` ends it."""

    def __init__(self, job: Any, paths: RunPaths) -> None:
        self._job, self._paths = job, paths

    def ended(self) -> str | None:
        if self._paths.finished:
            return ""
        if not self._job.done():
            return None
        # What `Command` raised is in a traceback, after which submitit names its files.
        said = [line for line in str(self._job.exception()).splitlines() if line.startswith(_RAISED)]
        if said:
            return said[-1].removeprefix(_RAISED)
        return f"its job ended without a result (SLURM says {self._job.state}); {self._job.paths.stderr} may say why"


def _forgotten(job: Any) -> bool:
    """Whether the accounting, where there is one, does not know a job of an earlier command any more."""
    pickled = job.paths.submitted_pickle
    new = pickled.exists() and time.time() - pickled.stat().st_mtime < _NEW
    if new or job.state != "UNKNOWN":
        return False
    try:  # submitit's state is UNKNOWN too where the accounting does not answer
        subprocess.run(["sacct", "--noheader", "--jobs", job.job_id], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def copy_code(root: Path, workdir: Path) -> Path:
    """Copies the program into the sweep's folder, under a name of its own. Returns: the copy's folder."""
    workdir.mkdir(parents=True, exist_ok=True)
    copy = Path(tempfile.mkdtemp(prefix="code-", dir=workdir.absolute()))
    for name in _CODE:
        if (root / name).is_file():
            shutil.copy(root / name, copy)
        else:
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / COMMIT_FILE).write_text(commit() or "")
    return copy


def _words(run: Run, root: Path, code: Path) -> list[str]:
    """The command of a run with the copied program, and the copied config where the config is a part of the copy."""
    file, colon, argument = run.words[0].removeprefix("--config=").partition(":")
    path = Path(file).resolve()
    if path.is_relative_to(root) and (code / path.relative_to(root)).is_file():
        path = code / path.relative_to(root)
    return [*program(code), f"--config={path}{colon}{argument}", *run.words[1:]]


def _parameters(options: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option in options:
        name, given, text = option.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if name in _OWN:
            raise UserError(f"--slurm={option} cannot be given: {_OWN[name]}")
        known = {*_SHARED, *submitit.SlurmExecutor._valid_parameters()}
        if not given and name in known - {"exclusive"}:  # sbatch has others that need no value, such as requeue
            raise UserError(f"--slurm={option} has no value; give KEY=VALUE, for instance --slurm=partition=gpu")
        # Only what reads back as it was written is a number: 00123 may be the name of an account.
        value: Any = int(text) if re.fullmatch("0|[1-9][0-9]*", text) else text if given else True
        if name in known:
            found[name if name in _SHARED else f"slurm_{name}"] = value
        else:
            found.setdefault("slurm_additional_parameters", {})[name.replace("_", "-")] = value
    return found
