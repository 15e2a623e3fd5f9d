"""Areas under convergence curves (paper B; `one_layer.runs.convergence`), as tables of the page."""

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from one_layer.report import texts
from one_layer.report.comparable import groups, measured
from one_layer.report.point import Point, own_first
from one_layer.report.reading import Record, alike_in_time
from one_layer.report.tables import Table
from one_layer.runs.convergence import AXES, LESS_IS_BETTER, Curve, curve, merit

_NEVER = "never"  # in the place of a share that is saved


class Areas(NamedTuple):
    """The areas of runs whose scores on the validation text can be compared (`one_layer.report.comparable`).

    `score` is what they are areas of, and `of` what it was measured on (`Record.validated`). `until` is T on each axis, and `means` are
    the areas up to T, divided by T, one for each of `records`. So are the `curves`.
    """

    score: str
    of: tuple[str, ...]
    records: list[Record]
    until: dict[str, float]
    means: dict[str, list[float]]
    curves: dict[str, list[Curve]]

    def saved(self, axis: str, run: int, baseline: int) -> float | None:
        """What a run saves of the way to the best score of the run `baseline`, as a share of that run's way; None if it never has it.

        Both runs are given by their places. A run that needs more than `baseline` saves less than 0.
        """
        goal = self.curves[axis][baseline].best()
        needed, reached = (self.curves[axis][place].reaches(goal) for place in (baseline, run))
        return None if reached is None or not needed else 1 - reached / needed


def areas(records: Iterable[Record]) -> list[Areas]:
    """Areas of all runs with a curve, which needs two evaluations, by what they can be compared with.

    The score is the one that selects their checkpoints. Runs that recorded other axes are apart, so that none takes an axis from others.
    """
    alike: dict[tuple[str, frozenset[str]], list[Record]] = {}
    for record in records:
        if record.result and len(record.evaluated(record.select)) > 1:
            recorded = frozenset(axis for axis in AXES if _records(record, record.select, axis))
            alike.setdefault((record.select, recorded), []).append(record)
    return [areas_of(each, score) for (score, _), found in alike.items() for each in groups(found, score)]


def areas_of(records: list[Record], score: str) -> Areas:
    """The areas of runs that can be compared, up to the end of the shortest run."""
    axes = [axis for axis in AXES if axis not in left_out(records, score)]
    curves = {axis: [curve(record.evaluated(score), score, axis) for record in records] for axis in axes}
    until = {axis: min(each.x[-1] for each in curves[axis]) for axis in axes}
    found = {axis: [each.mean(until[axis]) for each in curves[axis]] for axis in axes}
    return Areas(score, measured(records, score), records, until, found, curves)


def left_out(records: Sequence[Record], score: str) -> list[str]:
    """The axes on which the curves of `score` cannot be compared. Each run has evaluations.

    These are the axes that one of the runs did not record, and seconds if the runs did not all have as many devices of one kind, and
    populations of one size.
    """
    return [
        axis
        for axis in AXES
        if not all(_records(record, score, axis) for record in records)
        or (axis == "seconds" and not alike_in_time(records))
    ]


def _records(record: Record, score: str, axis: str) -> bool:
    """Whether a run with evaluations says of all of them where they lie on the axis."""
    lines = record.evaluated(score)
    return all(AXES[axis] in line for line in lines) and lines[-1][AXES[axis]] > 0


def table(each: Areas, points: Iterable[Point]) -> Table:
    """A table with a row for each model, the best first, and two columns for each axis, where something is saved on it.

    There is an axis. A run that is in none of `points` has a row of its own.
    """
    found = _models(each, points)
    best = [one.best() for one in next(iter(each.curves.values()))]
    merits = {row: merit(each.score, statistics.fmean(best[place] for place in found[row][1])) for row in found}
    models = {row: found[row] for row in sorted(found, key=merits.__getitem__, reverse=True)}
    dense = [row for row, (point, _) in models.items() if point and point.fully_weighted]
    baseline = dense[0] if dense else ""
    seeds = {each.records[place].seed: place for place in models[baseline][1]} if dense else {}
    pairs = {place: seeds[record.seed] for place, record in enumerate(each.records) if record.seed in seeds}
    rows = {row: places for row, (_, places) in models.items()}

    best_of = [_mean([best[place] for place in places]) for places in rows.values()]
    columns = {"model": list(rows), f"best {each.score}": best_of}
    saves = False
    for axis, until in each.until.items():
        means = [[each.means[axis][place] for place in places] for places in rows.values()]
        columns[f"by {axis}, T = {until:.4g}"] = [*map(_mean, means)]
        saved = [
            _saved([each.saved(axis, place, pairs[place]) for place in places if place in pairs])
            for places in rows.values()
        ]
        if any(cell not in ("", _NEVER) for row, cell in zip(rows, saved, strict=True) if row != baseline):
            saves = True
            columns[f"saved by {axis}"] = saved
    columns["runs"] = [str(len(places)) for places in rows.values()]
    less = "Less" if each.score in LESS_IS_BETTER else "More"
    saved_is = ""
    if saves:
        saved_is = (
            f" Saved: 1 - x / x of {baseline}, where x is how far a run is when it first has the best {each.score} of {baseline}; "
            f"seed by seed, and {_NEVER} where it does not reach that."
        )
    elif pairs and len(rows) > 1:
        saved_is = f" Nothing is saved: no other model ever has the best {each.score} of {baseline}."
    caption = (
        f"Area under the curve of {each.score} on valid up to T, divided by T: mean ± standard deviation over seeds. {less} is better. "
        f"T is the end of the shortest run.{saved_is} Seconds and operations are those of the run alone, "
        "without those of the runs that it needs: "
        "Methods has these."
    )
    title = f"Areas under the convergence curve: {each.score} by {', '.join(each.until)} ({texts.validated(each.of)})"
    return Table(title, caption, [*columns], [list(row) for row in zip(*columns.values(), strict=True)])


def _models(each: Areas, points: Iterable[Point]) -> dict[str, tuple[Point | None, list[int]]]:
    """The models of a table by name: a point of each, and the places of its runs."""
    known = {record.folder: point for point in reversed(own_first(points)) for record in point.records}
    found: dict[str, tuple[Point | None, list[int]]] = {}
    for place, record in enumerate(each.records):
        point = known.get(record.folder)
        found.setdefault(point.label if point else str(record.folder), (point, []))[1].append(place)
    return found


def _mean(values: list[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4g}{deviation}"


def _saved(values: list[float | None]) -> str:
    """The mean of what runs save, with the deviation; and how many of them save anything at all, if some never reach the score."""
    known = [value for value in values if value is not None]
    if not known:
        return _NEVER if values else ""
    deviation = f" ± {statistics.stdev(known):.1%}" if len(known) > 1 else ""
    some = f" ({len(known)} of {len(values)} runs)" if len(known) < len(values) else ""
    return f"{statistics.fmean(known):.1%}{deviation}{some}"
