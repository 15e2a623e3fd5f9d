"""The runs of a report, and the table of them: state, scores, cost and the best update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from one_layer.report.labels import run_names
from one_layer.report.point import Bench, Point
from one_layer.report.points import settings_of
from one_layer.report.reading import Record
from one_layer.report.tables import Table
from one_layer.runs.convergence import merit

_OFTEN = 4  # a score that fewer than one run in four has stands at the end of the table


class Run(NamedTuple):
    """A run with its names, its scores by the best checkpoint, and the bytes of its model, which are those of a file or counted."""

    record: Record
    name: str
    scores: dict[Bench, float]
    size: tuple[int, bool] | None


def runs_of(records: list[Record], benches: Mapping[Bench, Sequence[Point]]) -> list[Run]:
    """The runs, in the order of `records`."""
    names = run_names(records, settings_of(records))
    found = {record.folder: Run(record, names[record.folder], {}, None) for record in records}
    for bench, points in benches.items():
        for point in (point for point in points if point.whole):
            for record, value in zip(point.records, point.values, strict=True):
                run = found[record.folder]
                run.scores.setdefault(bench, value)
                found[record.folder] = run._replace(size=run.size or point.bytes)
    return list(found.values())


def state(record: Record) -> str:
    """What a run is doing (`one_layer.runs.progress`). A run that another program trained was only scored here."""
    return "scored" if record.imported else record.doing.state


def table(runs: Sequence[Run], benches: Sequence[Bench]) -> Table:
    """A row for each run."""
    shown = [bench for bench in benches if any(bench in run.scores for run in runs)]
    often = [bench for bench in shown if _OFTEN * sum(bench in run.scores for run in runs) >= len(runs)]
    seldom = [bench for bench in shown if bench not in often]
    columns = ["run", "state", *(bench.title for bench in often), "MB", "minutes", "best update", "of"]
    columns += [bench.title for bench in seldom]
    caption = (
        "Scores of the best checkpoint by the score on the validation text. MB: the file, or the weights counted where there is none. "
        "Minutes are those of the run alone."
    )
    ranked = sorted(runs, key=lambda run: _merit(run, shown), reverse=True)
    return Table("All runs", caption, columns, [_row(run, often, seldom) for run in ranked])


def _merit(run: Run, shown: Sequence[Bench]) -> tuple[bool, float]:
    """What the table is ordered by: the score of the first bench. Runs without one come last."""
    known = run.scores.get(shown[0]) if shown else None
    return (False, 0.0) if known is None else (True, merit(shown[0].measure, known))


def _row(run: Run, often: Sequence[Bench], seldom: Sequence[Bench]) -> list[str]:
    result = run.record.result
    minutes = f"{result['train_seconds'] / 60:.1f}" if "train_seconds" in result else ""
    best = str(result.get("valid", {}).get("step", ""))
    size = f"{run.size[0] / 1e6:.3f}" if run.size else ""
    cost = [size, minutes, best, str(steps(run.record) or "")]
    return [run.name, state(run.record), *_scores(run, often), *cost, *_scores(run, seldom)]


def _scores(run: Run, benches: Sequence[Bench]) -> list[str]:
    return [bench.shown(run.scores[bench]) if bench in run.scores else "" for bench in benches]


def steps(record: Record) -> int | None:
    """The updates of a run: those that it made, or of one that has not finished those that it will make, as far as it is known."""
    made: int | None = record.result.get("steps") or (record.metrics[-1]["step"] if record.metrics else None)
    return made if record.result else record.doing.progress.updates
