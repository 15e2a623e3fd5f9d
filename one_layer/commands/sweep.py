"""Runs a sweep of a config: one run after another, or several at a time, on this machine or on a SLURM cluster.

    python -m one_layer sweep --config=configs/toy.py --sweep=figure2 --workdir=runs/figure2 --jobs=2

The sweep is what the config's function sweep(NAME) returns; without --sweep, what sweep() returns. Every run has a folder of its own
in the sweep's folder, named after what it changes. The same command, given again, skips the runs that have finished, continues those
that were interrupted and tries those again that failed. --config.a.b=VALUE changes a key of all runs. --mode=report makes
tables of the results. The exit code is 1 if a run failed.
"""

import argparse
import dataclasses
import logging
import shlex
import time
from collections import Counter

from one_layer.cli.command import folder, parser_of, positive
from one_layer.runs.lock import locked
from one_layer.sweeps import plan as plans
from one_layer.sweeps.claim import claim
from one_layer.sweeps.jobs import Launcher
from one_layer.sweeps.plan import Plan, program
from one_layer.sweeps.populations import PopulationLauncher, describe
from one_layer.sweeps.queue import FINISHED, Queue
from one_layer.sweeps.scores import scores
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)

PROGRAM = program()
MEMBERS = 16


def run_sweep(plan: Plan, launcher: Launcher) -> int:
    """Runs what has not finished. Returns: the exit code: 0, 1 if a run failed, or 128 + the number of a signal.

    Raises: UserError if the folder holds another sweep, or if another process works in it.
    """
    with locked(plan.workdir, "runs this sweep"):
        claim(plan)
        queue = Queue(plan, launcher)
        done = sum(state == FINISHED for state in queue.states.values())
        log.info("%d runs in %s, %d of them finished", len(plan.runs), plan.workdir, done)

        def changed(runs: list[plans.Run]) -> None:
            for run in runs:
                state = queue.states[run.name]
                more = scores(run) if state == FINISHED else queue.problems.get(run.name, "")
                log.info("%s  %s  %s", time.strftime("%H:%M:%S"), run.name, f"{state}: {more}" if more else state)

        signal = queue.work(changed)
        for name, problem in queue.problems.items():
            log.info("%s failed: %s", name, problem)
        log.info(
            "%s: %s", plan.workdir, ", ".join(f"{n} {state}" for state, n in Counter(queue.states.values()).items())
        )
    if signal is not None:
        log.info("interrupted; the same command goes on")
        return 128 + signal
    return 1 if queue.problems else 0


def resolved(plan: Plan) -> Plan:
    """The plan with resolved configs, whose values are all checked before anything starts.

    Raises: UserError, which names the run, for values that cannot be used, and for two runs whose resolved configs are the same.
    """
    from one_layer.models.keys import MASKS  # late: they import JAX
    from one_layer.runs.settings import resolve

    runs = []
    for run in plan.runs:
        try:
            runs.append(dataclasses.replace(run, config=resolve(run.config).raw))
        except UserError as error:
            raise UserError(f"{run.name}: {error}") from None
    plans.check_configs(runs, [f"model.{name}" for name in MASKS])
    return dataclasses.replace(plan, runs=runs)


def main(argv: list[str]) -> int:
    """Runs the command line. Returns: the exit code. Raises: UserError for what cannot be run."""
    parser = parser_of(__doc__)
    parser.add_argument("--config", required=True, help="FILE or FILE:ARGUMENT, for instance configs/toy.py")
    parser.add_argument("--sweep", default="", help="the name of the sweep; without it, the config's default one")
    parser.add_argument("--workdir", type=folder, required=True, help="the folder for the folders of the runs")
    parser.add_argument("--launcher", choices=["local", "slurm"], default="local", help="where the runs work")
    parser.add_argument("--jobs", type=positive, default=1, help="how many runs work at the same time")
    parser.add_argument("--slurm", action="append", default=[], help="KEY=VALUE or KEY for sbatch, as partition=gpu")
    parser.add_argument("--vmap", action="store_true", help="train runs that differ only in numbers in one program")
    parser.add_argument("--members", type=positive, help=f"at most so many in one program (default {MEMBERS})")
    parser.add_argument("--dry_run", action="store_true", help="only print the commands that would run")
    arguments, rest = parser.parse_known_args(argv)
    _check_together(arguments, rest)
    if arguments.workdir.is_file():
        raise UserError(f"--workdir={arguments.workdir} is a file; give the name of a folder, which may be new")
    plan = resolved(plans.make(arguments.config, arguments.sweep, rest, arguments.workdir))
    launcher = _launcher(arguments)
    if arguments.vmap:
        for line in describe(plan.runs, arguments.members or MEMBERS):
            log.info(line)
    if arguments.dry_run:
        for run in plan.runs:
            if not run.paths.finished:
                print(shlex.join(["python", *(["main.py"] if len(PROGRAM) == 2 else PROGRAM[1:]), *run.words]))
        return 0
    return run_sweep(plan, launcher)


def _check_together(arguments: argparse.Namespace, rest: list[str]) -> None:
    """Raises: UserError for options that do not fit together. `rest`: the words that are no option of this command."""
    if any(word.startswith(("--distributed", "--process")) for word in rest):
        raise UserError("a sweep trains each run in one process; leave --distributed, --processes and --process out")
    if arguments.vmap and arguments.launcher == "slurm":
        raise UserError("--vmap trains on this machine; leave it out, or give --launcher=local")
    if arguments.slurm and arguments.launcher != "slurm":
        raise UserError(f"--slurm={arguments.slurm[0]} is only used with --launcher=slurm; add that, or leave it out")
    if arguments.members and not arguments.vmap:
        raise UserError(f"--members={arguments.members} is only used with --vmap; add that, or leave it out")


def _launcher(arguments: argparse.Namespace) -> Launcher:
    if arguments.launcher == "slurm":
        from one_layer.sweeps.slurm import SlurmLauncher

        return SlurmLauncher(arguments.workdir, arguments.jobs, arguments.slurm)
    if arguments.vmap:
        return PopulationLauncher(PROGRAM, arguments.jobs, arguments.members or MEMBERS)
    return Launcher(PROGRAM, arguments.jobs)
