"""Compares how fast runs converge: AUCC over seconds, updates and operations, and what is saved until the baseline's best score.

    python -m one_layer convergence --baseline=runs/LLLL --runs='runs/*' [--score=bleu] [--picture=FILE.svg] [--axis=updates]

The table is that of the report (`--mode=report`), with a row for each run and the baseline that you name. --updates, --flops and --seconds
give the end T of the areas; without them, it is the end of the shortest run. The conventions are those of
one_layer/runs/convergence.py. Runs without a curve, or whose score is of another text than the baseline's, or is measured otherwise, or
whose metrics lack evaluations, are left out. So is an axis that one of the runs did not record, and seconds of other devices.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from one_layer.cli.command import parser_of
from one_layer.report.areas import areas_of, is_curve, left_out, run_table
from one_layer.report.comparable import otherwise
from one_layer.report.naming import described
from one_layer.report.plain_text import aligned
from one_layer.report.reading import Record, in_place
from one_layer.runs.collection import Place, opened
from one_layer.runs.convergence import AXES, Curve
from one_layer.runs.paths import RunPaths, read_metrics
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

_UNITS = {"seconds": "seconds of training", "updates": "updates", "flops": "operations (FLOPs)"}


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--runs", required=True, help="a pattern of folders of runs, for instance 'runs/*'")
    parser.add_argument("--baseline", required=True, help="the folder of the run that the others are compared with")
    parser.add_argument("--score", default="bleu", help="a validation score: bleu, nll, accuracy, ...")
    parser.add_argument("--updates", type=_end, help="T in updates; by default the end of the shortest run")
    parser.add_argument("--flops", type=_end, help="T in operations; by default the end of the shortest run")
    parser.add_argument("--seconds", type=_end, help="T in seconds of training; by default the end of the shortest run")
    parser.add_argument("--picture", type=_picture_file, help="an .svg file for the curves")
    parser.add_argument(
        "--axis", choices=tuple(AXES), default="updates", help="what the picture shows the score against"
    )
    arguments = parser.parse_args(argv)
    records = _comparable(arguments.baseline, arguments.runs, arguments.score)
    without = left_out(records, arguments.score)
    if arguments.picture and arguments.axis in without:
        raise UserError(
            f"--axis={arguments.axis} cannot be drawn, because {without[arguments.axis]}; give another --axis"
        )
    for axis, reason in without.items():
        print(f"the axis of {_UNITS[axis]} is left out, because {reason}", file=sys.stderr)
    for record in records:
        if record.sources:
            print(f"{record.folder} {described(record.sources)}; that is not counted here", file=sys.stderr)
    ends = {axis: end for axis in AXES if (end := getattr(arguments, axis)) is not None}
    found = areas_of(records, arguments.score, ends)
    names = [str(record.folder) for record in records]
    table = run_table(found, names)
    print(f"{aligned([table.columns, *table.rows])}\n\n{table.caption}")
    if arguments.picture:
        curves = found.curves[arguments.axis]
        _draw(dict(zip(_short(names), curves, strict=True)), arguments.score, arguments.axis, arguments.picture)


def _comparable(baseline: str, pattern: str, score: str) -> list[Record]:
    """The baseline and the runs that can be compared with it. Says on stderr which runs are left out.

    Raises: UserError for a pattern without runs, for files that are missing or damaged, and for a baseline without a whole curve.
    """
    others, own = _records(pattern), _records(baseline)
    if not others:
        raise UserError(f"--runs={pattern} matches no folder with a metrics.jsonl; give a pattern such as 'runs/*'")
    if len(own) != 1:
        raise UserError(f"--baseline={baseline} is {len(own)} folders with a metrics.jsonl; give that of one run")
    if lost := _without_curve(own[0], score):
        raise UserError(f"{baseline} {lost}; give another baseline, or another --score")
    records: dict[Path, Record] = {}
    for record in (*own, *others):
        records.setdefault(record.folder.resolve(), record)  # one folder may be given by two paths
    found = []
    for record in records.values():
        if lost := _without_curve(record, score):
            print(f"{record.folder} is left out: it {lost}", file=sys.stderr)
        elif other := otherwise(record, own[0], score):
            print(f"{record.folder} is left out: its validation {score} is {other}, as the baseline's", file=sys.stderr)
        else:
            found.append(record)
    return found


def _without_curve(run: Record, score: str) -> str:
    """Why the run has no curve of the score, in words; empty if it has one."""
    if is_curve(run.evaluated(score)):
        return ""
    if run.evaluated(score):
        return "has a single evaluation, which is no curve"
    if not any(f"valid/{score}" in line for line in run.metrics):
        known = sorted(
            {name.removeprefix("valid/") for line in run.metrics for name in line if name.startswith("valid/")}
        )
        return f"has no validation score {score!r} yet, but {', '.join(known) or 'none'}"
    return "lacks lines of its metrics" if run.lacks_evaluations else f"has a {score} that is not finite"


def _records(pattern: str) -> list[Record]:
    """The runs with metrics that the pattern matches, as a report reads them, and folders with metrics alone, of which no more is known."""
    with opened(pattern) as places:
        return [record for place in places for record in (*in_place(place), *_bare(place)) if record.metrics]


def _bare(place: Place) -> Iterator[Record]:
    there = [place.pattern] if Path(place.pattern).is_dir() else sorted(glob(place.pattern, recursive=True))
    for paths in map(RunPaths, there):
        if paths.metrics_file.is_file() and not (paths.config_file.is_file() or paths.result_file.is_file()):
            yield Record(place.named(paths.path), {}, metrics=read_metrics(paths.metrics_file))


def _short(folders: list[str]) -> list[str]:
    """A name for each folder: the last part of its path, or the whole path where other folders have the same last part."""
    last = [Path(folder).name for folder in folders]
    names = [name if last.count(name) == 1 else folder for name, folder in zip(last, folders, strict=True)]
    return [f"./{name}" if name.startswith("_") else name for name in names]  # Matplotlib hides names with _ in front


def _draw(curves: dict[str, Curve], score: str, axis: str, path: Path) -> None:
    """Draws a line for each run, with its name. Past the number of colours, lines are dashed."""
    from one_layer.report.drawing import COLOURS, legend, new_axes, standalone, svg

    figure, axes = new_axes(_UNITS[axis], f"validation {score}")
    for place, (name, each) in enumerate(curves.items()):
        style = "-" if place < len(COLOURS) else "--"
        axes.plot(each.x, each.y, style, color=COLOURS[place % len(COLOURS)], linewidth=1.2, label=name)
    legend(figure)
    write_atomically(path, standalone(svg(figure, path.stem)))


def _end(text: str) -> float:
    """Parses the end of an axis. Raises: ArgumentTypeError for anything but a number above 0."""
    try:
        end = float(text)
    except ValueError:
        end = 0.0
    if not 0.0 < end < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return end


def _picture_file(text: str) -> Path:
    """Parses --picture. Raises: ArgumentTypeError for another ending than .svg."""
    path = Path(text)
    if path.suffix != ".svg":
        raise argparse.ArgumentTypeError(f"{text!r} must end in .svg")
    return path
