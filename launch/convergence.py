"""Compares how fast runs converge: AUCC over seconds, updates and operations, and what is saved until the baseline's best score.

    python launch/convergence.py --baseline=runs/LLLL runs/ffn runs/gru [--score=bleu] [--seconds=T]

The conventions are those of one_layer/training/convergence.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch import command
from one_layer.errors import UserError
from one_layer.training.convergence import compare, read


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs")
    parser.add_argument(
        "--baseline", type=Path, required=True, help="the folder of the run that the others are compared with"
    )
    parser.add_argument("--score", default="bleu", help="a validation score: bleu, nll, accuracy, ...")
    parser.add_argument(
        "--seconds", type=command.positive, help="T of the axis of seconds; by default the shortest run's end"
    )
    arguments = parser.parse_args()
    runs = {}
    for folder in (arguments.baseline, *arguments.runs):
        path = folder / "metrics.jsonl"
        if not path.is_file():
            raise UserError(f"{folder} has no metrics.jsonl; give folders of runs")
        runs[str(folder)] = read(path.read_text("utf-8"))
    print(compare(runs, str(arguments.baseline), arguments.score, arguments.seconds))


if __name__ == "__main__":
    command.run(main)
