"""Starts the runs of a sweep as populations: runs that differ only in numbers are trained by one process, in one program."""

from typing import Any

from one_layer.runs.progress import log_file, mistake
from one_layer.sweeps.jobs import Job, Launcher, Process, size
from one_layer.sweeps.plan import Run
from one_layer.training.programs import INPUTS, apart, mark


class PopulationLauncher(Launcher):
    """Trains at most `members` runs together, by the command `population` of `program`; `jobs` such processes work at the same time.

    A run that no other one fits is trained as without populations.
    """

    def __init__(self, program: list[str], jobs: int, members: int) -> None:
        super().__init__(program, jobs)
        self._members, self._started = members, 0
        self._working: list[Job] = []

    def choose(self, ready: list[Run], working: int) -> list[Run]:
        """The first run and those that can be trained with it."""
        self._working = [each for each in self._working if each.ended() is None]
        if not ready or len(self._working) >= self._at_once:
            return []
        first = mark(ready[0].config)
        return [run for run in ready if mark(run.config) == first][: self._members]

    def start(self, runs: list[Run]) -> list[Job]:
        """Starts the runs, which one program can train. It prints to population-NUMBER.log, and each member to NAME.log."""
        if len(runs) == 1:
            jobs = super().start(runs)
            self._working += jobs
            return jobs
        self._started += 1
        workdir = runs[0].folder.parent
        words = [*self._program, "population", f"--workdir={workdir}", *(run.name for run in runs)]
        process = Process(words, workdir / f"population-{self._started}.log")
        self._working.append(process)
        return [_Member(process, run) for run in runs]


def describe(runs: list[Run], members: int) -> list[str]:
    """Lines for people: how many programs the runs need, and for which keys."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(mark(run.config), []).append(run)
    firsts: list[Any] = [group[0].config for group in groups.values()]
    sizes = ", ".join(str(len(group)) for group in groups.values())
    lines = [f"{len(runs)} runs in {len(groups)} groups of {sizes}, at most {members} runs in a program"]
    if len(groups) > 1:
        lines.append(
            f"the groups differ in {', '.join(apart(firsts))}; one program takes other values of {', '.join(INPUTS)}"
        )
    return lines


class _Member(Job):
    """A run that is trained in a population. It may end before the others do."""

    def __init__(self, process: Process, run: Run) -> None:
        self.process: Process = process
        self._run, self._log = run, log_file(run.folder)
        self._begin = size(self._log)

    def ended(self) -> str | None:
        if self._run.paths.finished:
            return ""
        why = self.process.ended()
        return why and (mistake(self._log, self._begin) or why)  # the member itself may have ended with a sentence
