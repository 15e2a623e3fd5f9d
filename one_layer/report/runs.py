"""The tables of runs: all of them with their scores and costs, and those that have not finished."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from one_layer.report.point import Bench, Point, own_first
from one_layer.report.reading import Record
from one_layer.report.tables import Table
from one_layer.runs.convergence import merit
from one_layer.runs.progress import FINISHED, STOPPED, UNDER_WAY, WAITING, duration

_ORDER = (FINISHED, UNDER_WAY, STOPPED, WAITING)  # finished: while its files were read


def table(records: Sequence[Record], names: Mapping[Path, str], benches: Mapping[Bench, Sequence[Point]]) -> Table:
    """A row for each run: its scores by the best checkpoint, and the bytes of its model, which are those of a file or counted."""
    scores: dict[Bench, dict[Path, float]] = {bench: {} for bench in benches}
    sizes: dict[Path, int] = {}
    for point in own_first(point for points in benches.values() for point in points):
        for record, value in zip(point.records, point.values, strict=True):
            scores[point.bench].setdefault(record.folder, value)
            if point.bytes:
                sizes.setdefault(record.folder, point.bytes)

    first = next((bench for bench in benches if scores[bench]), None)

    def rank(record: Record) -> float:
        if first is None or record.folder not in scores[first]:
            return -math.inf
        return merit(first.measure, scores[first][record.folder])

    rows = []
    for record in sorted(records, key=rank, reverse=True):
        result, size = record.result, sizes.get(record.folder)
        cells = [bench.shown(its[record.folder]) if record.folder in its else "" for bench, its in scores.items()]
        minutes = f"{result['train_seconds'] / 60:.1f}" if "train_seconds" in result else ""
        best = str(result.get("valid", {}).get("step", ""))
        state = "scored" if record.imported else record.doing.state  # another program trained it
        cost = [f"{size / 1e6:.3f}" if size else "", minutes, best, str(_updates(record) or "")]
        rows.append([names[record.folder], state, *cells, *cost])
    columns = ["run", "state", *(bench.title for bench in benches), "MB", "minutes", "best update", "of"]
    caption = (
        "Scores of the best checkpoint by the score on the validation text. MB: the file, or the weights counted where there is none. "
        "Minutes are those of the run alone."
    )
    return Table("All runs", caption, columns, rows)


def _updates(record: Record) -> int | None:
    """The updates that a run made, or of one that has not finished those that it will make, as far as it is known."""
    if not record.result:
        return record.doing.progress.updates
    made: int | None = record.result.get("steps") or (record.metrics[-1]["step"] if record.metrics else None)
    return made


def unfinished(records: Iterable[Record], names: Mapping[Path, str] | None = None) -> Table:
    """A row for each run that has not finished, those that are under way first. Runs are said by `names`, else by their folders."""
    waiting = sorted((each for each in records if not each.result), key=lambda each: _ORDER.index(each.doing.state))
    columns = ["run", "state", "update", "newest score", "time left"]
    caption = (
        "The time left is that of the updates alone, at the mean speed of the run so far: evaluations and scoring come on top, and "
        "train.patience may end a run sooner. A failed run says why; the same command goes on with those that are not finished."
    )
    rows = [_unfinished(record, (names or {}).get(record.folder, str(record.folder))) for record in waiting]
    return Table("Runs that have not finished", caption, columns, rows)


def _unfinished(record: Record, name: str) -> list[str]:
    doing = record.doing
    now = doing.progress
    state = ": ".join(filter(None, [doing.state, doing.problem]))
    update = f"{now.update:,}{f' of {now.updates:,}' if now.updates else ''}" if now.update else ""
    left = duration(now.left) if doing.state == UNDER_WAY and now.left is not None else ""
    if left and now.update == now.updates:
        left = "being scored"
    return [name, state, update, now.metric, left]
