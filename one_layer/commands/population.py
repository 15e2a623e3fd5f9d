"""Trains some runs of a sweep in one program. `one_layer sweep --vmap` starts it; it reads their configs from sweep.json.

    python -m one_layer population --workdir=runs/figure2 NAME NAME ...

What it says about a run goes to NAME.log beside the run's folder. The exit code is 1 if a run failed.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from one_layer.cli.command import parser_of
from one_layer.runs.paths import SWEEP_FILE, read_object
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.training.population import Entry

_FLAG = "--xla_cpu_experimental_ynn_fusion_type"
_WRONG = "0.10.2"  # the version of jaxlib


def choose_right_programs() -> None:
    """Turns off the fusions with which jaxlib 0.10.2 computes some stacked products on a CPU wrongly (jax issue 39103).

    Must be called before JAX is imported. Other versions may not know the flag.
    """
    given = os.environ.get("XLA_FLAGS", "")
    if importlib.metadata.version("jaxlib") == _WRONG and _FLAG not in given:
        os.environ["XLA_FLAGS"] = f"{given} {_FLAG}=".strip()


class _Logs(logging.Handler):
    """Writes what the program says while a member works to the log of that member."""

    def __init__(self, workdir: Path) -> None:
        super().__init__(logging.INFO)
        self._workdir = workdir

    def emit(self, record: logging.LogRecord) -> None:
        """Appends a line."""
        from one_layer.training.population import SPEAKER

        if name := SPEAKER.get():
            with (self._workdir / f"{name}.log").open("a", encoding="utf-8") as file:
                file.write(self.format(record) + "\n")


def main(argv: list[str]) -> int:
    """Trains the runs. Returns: the exit code: 0, 1 if a run failed, or 128 + the number of a signal."""
    parser = parser_of(__doc__)
    parser.add_argument("--workdir", type=Path, required=True, help="the folder of the sweep")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a run of the sweep")
    arguments = parser.parse_args(argv)
    choose_right_programs()
    from one_layer.cli.command import set_up
    from one_layer.training.interruption import Interrupted, Interruption
    from one_layer.training.population import train_together

    set_up()
    logging.getLogger().addHandler(_Logs(arguments.workdir))
    entries = _entries(arguments.workdir, arguments.names)
    try:
        with Interruption() as interruption:
            failed = train_together(entries, interruption)
    except Interrupted as interrupted:
        print(f"interrupted by signal {interrupted.number}; all runs are saved", file=sys.stderr, flush=True)
        os._exit(128 + interrupted.number)  # Python's normal exit crashes while XLA still computes
    for name, problem in failed.items():
        print(f"{name} failed: {problem}", file=sys.stderr)
    return 1 if failed else 0


def _entries(workdir: Path, names: list[str]) -> list[Entry]:
    from one_layer.runs.settings import resolve
    from one_layer.training.population import Entry

    path = workdir / SWEEP_FILE
    runs = read_object(path).get("runs", {})
    if unknown := [name for name in names if name not in runs]:
        raise UserError(f"{path} has no run {unknown[0]}; it has {', '.join(runs)}")
    # As overrides, the words that main.py would have noted.
    noted = {
        name: [word.removeprefix("--") for word in runs[name]["words"] if not word.startswith("--workdir=")]
        for name in names
    }
    return [Entry(name, resolve(runs[name]["config"]), workdir / name, noted[name]) for name in names]
