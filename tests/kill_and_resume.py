"""Kills training processes at random moments, starts them again by the same command, and compares with an uninterrupted run.

    python -m tests.kill_and_resume --kills=60 --seed=1 --task=translation

Every process that is killed is a real `python main.py` on tiny text. It is killed by SIGKILL at a random time, or shortly after something
has begun: the store of data, the folder of the run, a line of metrics, a save, the final evaluation, the ticket. A run that reaches its
end is compared (metrics without gaps or doubles, scores, result.json, ticket and all other files; only times may differ), and a new one
begins.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import tiny_runs
from tests.tiny_runs import COMMON, TASKS

_SHORTLY = 0.15  # seconds: the longest wait after what a kill waits for
_IMPORTS = 3.0  # seconds, about: what a process takes to begin
_LINES = (5, 8)  # of metrics, before which the first checkpoint has been written
Happened = Callable[[], bool]


@dataclass
class Report:
    """How often each kind of kill happened, the number of compared runs, and every difference that was found."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [f"{count:6}  {moment}" for moment, count in sorted(self.kills.items())]
        end = f"{self.kills.total()} kills in {self.runs} compared runs; " + (
            "differences:\n" + "\n".join(self.differences) if self.differences else "no differences"
        )
        return "\n".join([" kills  moment", *rows, end])


def harness(folder: Path, kills: int, seed: int, task: str, moments: Sequence[str] = ()) -> Report:
    """Makes an uninterrupted run in `folder`, and others that are killed `kills` times in total. Returns what was found.

    The first kills are at `moments`, and all others at random ones.
    """
    dice, report = random.Random(seed), Report()
    whole = folder / "whole"
    tiny_runs.write_text(whole, task)
    began = time.perf_counter()
    tiny_runs.run(whole, task)  # the first time, it compiles the programs too
    seconds = _IMPORTS + time.perf_counter() - began
    while report.kills.total() < kills:
        place = folder / f"run-{report.runs}"
        tiny_runs.write_text(place, task)
        finished = False
        while not finished:
            killed = report.kills.total()
            moment = moments[killed] if killed < len(moments) else None
            finished = _start(place, task, dice, seconds, report, moment) if killed < kills else _finish(place, task)
        report.runs += 1
        report.differences += [f"{place.name}: {name}" for name in tiny_runs.differences(place, whole)]
    return report


def _finish(place: Path, task: str) -> bool:
    tiny_runs.run(place, task)
    return True


def _start(
    place: Path, task: str, dice: random.Random, seconds: float, report: Report, moment: str | None = None
) -> bool:
    """Starts the run once and kills it. Returns whether it ended before. Raises: CalledProcessError if it failed by itself."""
    moments = _moments(place / "run", place / "store", dice, seconds)
    moment = moment or dice.choice(list(moments))
    wait, more = moments[moment], dice.uniform(0, _SHORTLY)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            tiny_runs.command(task), cwd=place, env=tiny_runs.environment(), stdout=output, stderr=output
        )
        while process.poll() is None and not wait():
            time.sleep(0.001)
        try:
            code = process.wait(0 if moment == "any time" else more)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait(60)
        if code not in (0, -signal.SIGKILL):
            output.seek(0)
            raise subprocess.CalledProcessError(code, process.args, output.read().decode())
    if code == 0:
        return True
    report.kills[moment] += 1
    print(f"killed: {moment}", file=sys.stderr, flush=True)
    return False


def _moments(run: Path, store: Path, dice: random.Random, seconds: float) -> dict[str, Happened]:
    """What a kill may wait for. Each function says whether it has happened in the process that was just started."""
    end, lines = time.monotonic() + dice.uniform(0, seconds), dice.randint(*_LINES)
    begun = {path: _present(path) for path in (run, store, run / "checkpoints")}
    had = _lines(run)

    def new(path: Path, pattern: str) -> Happened:
        """Whether something that fits `pattern` is there that was not, or is still being written."""
        return lambda: bool(set(path.glob(pattern)) - begun.get(path, set()))

    return {
        "any time": lambda: time.monotonic() >= end,
        "the store of data is prepared": new(store, "*"),
        "the folder of the run is made": new(run, "*"),
        "a line of metrics": lambda: _lines(run) >= had + lines,
        "a checkpoint is saved": new(run / "checkpoints", "*"),
        "the final evaluation": new(run / "checkpoints", str(COMMON["train.updates"])),
        "the ticket is written": new(run, "*ticket*"),
    }


def _present(path: Path) -> set[Path]:
    return set(path.glob("*"))


def _lines(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(argv: Iterable[str] | None = None) -> int:
    """Runs the command line. Returns 1 if anything differed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--task", choices=TASKS, default="translation")
    arguments = parser.parse_args(argv if argv is None else list(argv))
    with tempfile.TemporaryDirectory() as folder:
        report = harness(Path(folder), arguments.kills, arguments.seed, arguments.task)
    print(report)
    return bool(report.differences)


if __name__ == "__main__":
    sys.exit(main())
