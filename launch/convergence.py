"""Compares how fast runs converge: AUCC over seconds, updates and operations, and what is saved until the baseline's best score.

    python launch/convergence.py --baseline=runs/LLLL --runs='runs/*' [--score=bleu] [--seconds=T]

The conventions are those of one_layer/training/convergence.py.
"""

from __future__ import annotations

import argparse
import sys
from glob import glob
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch import command
from one_layer.errors import UserError
from one_layer.training.convergence import compare, read


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", required=True, help="a pattern of folders of runs, for instance 'runs/*'")
    parser.add_argument(
        "--baseline", type=Path, required=True, help="the folder of the run that the others are compared with"
    )
    parser.add_argument("--score", default="bleu", help="a validation score: bleu, nll, accuracy, ...")
    parser.add_argument(
        "--seconds", type=command.positive, help="T of the axis of seconds; by default the shortest run's end"
    )
    arguments = parser.parse_args()
    others = [Path(name) for name in sorted(glob(arguments.runs)) if (Path(name) / "metrics.jsonl").is_file()]
    if not others:
        raise UserError(
            f"--runs={arguments.runs} matches no folder with a metrics.jsonl; give a pattern such as 'runs/*'"
        )
    runs = {}
    for folder in dict.fromkeys((arguments.baseline, *others)):
        path = folder / "metrics.jsonl"
        if not path.is_file():
            raise UserError(f"{folder} has no metrics.jsonl; give the folder of a run")
        lines = read(path.read_text("utf-8"))
        if folder != arguments.baseline and not any(f"valid/{arguments.score}" in line for line in lines):
            print(f"{folder} is left out: it has no validation score {arguments.score!r} yet", file=sys.stderr)
            continue
        runs[str(folder)] = lines
    print(compare(runs, str(arguments.baseline), arguments.score, arguments.seconds))


if __name__ == "__main__":
    command.run(main)
