"""Areas under convergence curves (paper B; `one_layer.runs.convergence`), as tables of the page and as rows of a CSV file."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from one_layer.report.point import Point
from one_layer.report.reading import Record, alike_in_time
from one_layer.report.tables import Table
from one_layer.runs.convergence import AXES, LESS_IS_BETTER, means


class Areas(NamedTuple):
    """The areas of runs whose scores on the validation text can be compared.

    `score` is the one that selects their checkpoints, and `of` what it was measured on (`Record.validated`). `until` is T on each axis,
    which is the end of the shortest run, and `means` are the areas up to T, divided by T, one for each of `records`.
    """

    score: str
    of: tuple[str, ...]
    records: list[Record]
    until: dict[str, float]
    means: dict[str, list[float]]


def areas(records: Iterable[Record]) -> list[Areas]:
    """Areas of all runs with a curve, which needs two evaluations, by what they can be compared with.

    Axes that are `left_out` are missing.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Record]] = {}
    for record in records:
        score = record.select
        if record.result and is_curve(record.evaluated(score)):
            groups.setdefault((score, record.validated(score)), []).append(record)
    return [_areas(score, of, each) for (score, of), each in groups.items()]


def _areas(score: str, of: tuple[str, ...], records: list[Record]) -> Areas:
    without = left_out(records, score)
    found = {
        axis: means([record.evaluated(score) for record in records], score, axis)
        for axis in AXES
        if axis not in without
    }
    return Areas(
        score, of, records, {axis: end for axis, (end, _) in found.items()}, {a: m for a, (_, m) in found.items()}
    )


def is_curve(evaluations: list[dict[str, Any]]) -> bool:
    """Whether these are enough evaluations for a curve."""
    return len(evaluations) > 1


def left_out(records: Sequence[Record], score: str) -> dict[str, str]:
    """The axes on which the curves of `score` cannot be compared, each with the reason for people. Each run has evaluations.

    These are the axes that one of the runs did not record, and seconds if the runs did not all have as many devices of one kind, and
    populations of one size.
    """
    found = {}
    for axis, name in AXES.items():
        lines = {record.folder: record.evaluated(score) for record in records}
        lacking = [
            folder for folder, each in lines.items() if not all(name in line for line in each) or not each[-1][name] > 0
        ]
        if lacking:
            found[axis] = f"{lacking[0]} did not record it"
        elif axis == "seconds" and not alike_in_time(records):
            found[axis] = "the runs had other devices, or populations of other sizes, or do not say what they had"
    return found


def table(each: Areas, points: Iterable[Point]) -> Table:
    """A table with a row for each model and a column for each axis. A run that is in none of `points` has a row of its own."""
    models = {record.folder: point for point in points if point.whole for record in point.records}
    places: dict[object, list[int]] = {}
    for place, record in enumerate(each.records):
        point = models.get(record.folder)
        places.setdefault(point.setting if point else record.folder, []).append(place)
    rows = []
    for runs in places.values():
        folder = each.records[runs[0]].folder
        point = models.get(folder)
        name = point.label if point else str(folder)
        rows.append([name, *(_mean([found[run] for run in runs]) for found in each.means.values()), str(len(runs))])
    columns = ["model", *(f"by {axis}, T = {until:.4g}" for axis, until in each.until.items()), "runs"]
    less = "Less" if each.score in LESS_IS_BETTER else "More"
    caption = (
        f"Area under the curve of {each.score} on valid up to T, divided by T: mean ± standard deviation over seeds. {less} is better. "
        f"T is the end of the shortest run. Seconds and operations are those of the run alone, without those of the runs that it needs: "
        f"Methods has these. What was measured: {', '.join(short(part) for part in each.of)}."
    )
    return Table(f"Areas under the convergence curve: {each.score}", caption, columns, rows)


def _mean(values: list[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4g}{deviation}"


def short(part: str) -> str:
    """A part of what was measured, for people: of a long fingerprint, the first characters."""
    return " ".join(word[:8] if len(word) >= 32 else word for word in part.split())


def cells(found: Iterable[Areas]) -> Iterator[dict[str, Any]]:
    """The rows of a CSV file: a row for each run and axis."""
    for each in found:
        for axis, until in each.until.items():
            for record, mean in zip(each.records, each.means[axis], strict=True):
                yield {
                    "folder": str(record.folder),
                    "seed": record.seed,
                    "score": each.score,
                    "measured_on": ", ".join(each.of),
                    "axis": axis,
                    "until": until,
                    "area": mean * until,
                    "mean": mean,
                }
