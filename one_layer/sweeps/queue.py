"""Works through the runs of a sweep: starts what is ready, notices what has ended, and stops cleanly."""

import time
from collections.abc import Callable

from one_layer.runs.lock import in_use
from one_layer.sweeps.jobs import Job, Launcher
from one_layer.sweeps.plan import Plan, Run
from one_layer.training.interruption import Interruption

FINISHED, RUNNING, WAITING, FAILED, INTERRUPTED = "finished", "running", "waiting", "failed", "interrupted"
ELSEWHERE = "under way in another process"  # perhaps of a sweep that was killed
_PAUSE = 0.2  # seconds between two looks


class Queue:
    """The states of a sweep's runs. `problems` says why a run failed. A run with a result is finished from the start."""

    def __init__(self, plan: Plan, launcher: Launcher) -> None:
        self.plan, self._launcher = plan, launcher
        self.states = {run.name: self._found(run) for run in plan.runs}
        self.problems: dict[str, str] = {}
        self._jobs: dict[str, Job] = {}

    def work(self, changed: Callable[[list[Run]], None]) -> int | None:
        """Works until all runs have ended, or until a signal asks to stop.

        Calls `changed` with the runs whose state has changed. Returns: the signal, if one came.
        """
        forwarded = False
        changed([run for run in self.plan.runs if self.states[run.name] == ELSEWHERE])
        with Interruption() as interruption:
            try:
                while self._open(interruption.signal):
                    before = dict(self.states)
                    self._collect(interruption.signal)
                    if interruption.signal is None:
                        self._start()
                    elif not forwarded:
                        forwarded = True
                        self._stop(interruption.signal)
                    if others := [run for run in self.plan.runs if self.states[run.name] != before[run.name]]:
                        changed(others)
                    time.sleep(_PAUSE)
            except KeyboardInterrupt:  # a second Ctrl-C: the runs get a second one too, which ends them at once
                self._stop(2)
                stopped = [run for run in self.plan.runs if run.name in self._jobs and not self._launcher.detached]
                self.states |= {run.name: INTERRUPTED for run in stopped}
                changed(stopped)
                raise
        return interruption.signal

    def _open(self, signal: int | None) -> bool:
        """Whether there is anything to wait for. After a signal, only processes that save their checkpoints are waited for."""
        if signal is not None:
            return bool(self._jobs) and not self._launcher.detached
        return not {WAITING, ELSEWHERE}.isdisjoint(self.states.values()) or bool(self._jobs)

    def _found(self, run: Run) -> str:
        """The state of a run that this sweep has not started. Detached jobs lock their folders too, and the launcher knows them."""
        if not self._launcher.detached and in_use(run.folder):
            return ELSEWHERE
        return FINISHED if run.paths.finished else WAITING

    def _start(self) -> None:
        elsewhere = [run for run in self.plan.runs if self.states[run.name] == ELSEWHERE]
        self.states |= {run.name: self._found(run) for run in elsewhere}
        waiting = [run for run in self.plan.runs if self.states[run.name] == WAITING]
        ready = []
        for run in waiting:
            failed = [name for name in run.needs if self.states[name] == FAILED]
            if failed:
                self.states[run.name] = FAILED
                self.problems[run.name] = f"it needs the run {failed[0]}, which failed"
            elif all(self.states[name] == FINISHED for name in run.needs):
                ready.append(run)
        failing = any(self.states[run.name] == FAILED for run in waiting)
        assert ready or failing or self._jobs or elsewhere or not waiting, "a cycle, which `plan` refuses"
        chosen = self._launcher.choose(ready, len(self._jobs) + len(elsewhere))
        for run, job in zip(chosen, self._launcher.start(chosen) if chosen else [], strict=True):
            self._jobs[run.name] = job
            self.states[run.name] = RUNNING

    def _collect(self, signal: int | None) -> None:
        """Whatever the exit code of a run, a result counts: the next command will find it too."""
        for run in self.plan.runs:
            if run.name not in self._jobs or (ended := self._jobs[run.name].ended()) is None:
                continue
            del self._jobs[run.name]
            if run.paths.finished:
                self.states[run.name] = FINISHED
            elif signal is not None:
                self.states[run.name] = INTERRUPTED
            else:
                self.states[run.name] = FAILED
                self.problems[run.name] = ended

    def _stop(self, number: int) -> None:
        for process in filter(None, {job.process for job in self._jobs.values()}):
            process.stop(number)
