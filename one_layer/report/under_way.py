"""The runs that have not finished: what each of them is doing, and how long it still takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from one_layer.report.reading import Record
from one_layer.report.tables import Table
from one_layer.runs.progress import STOPPED, UNDER_WAY, WAITING, duration

_ORDER = (UNDER_WAY, STOPPED, WAITING)


def table(records: Iterable[Record], names: Mapping[Path, str] | None = None) -> Table:
    """A row for each run that has not finished, those that are under way first. Runs are said by `names`, else by their folders."""
    waiting = sorted((each for each in records if not each.result), key=lambda each: _ORDER.index(each.doing.state))
    columns = ["run", "state", "update", "newest score", "time left"]
    caption = (
        "The time left is that of the updates alone, at the mean speed of the run so far: evaluations and scoring come on top, and "
        "train.patience may end a run sooner. A failed run says why; the same command goes on with those that are not finished."
    )
    return Table(
        "Runs that have not finished",
        caption,
        columns,
        [_row(record, (names or {}).get(record.folder, str(record.folder))) for record in waiting],
    )


def _row(record: Record, name: str) -> list[str]:
    doing = record.doing
    now = doing.progress
    state = ": ".join(filter(None, [doing.state, doing.problem]))
    update = f"{now.update:,}{f' of {now.updates:,}' if now.updates else ''}" if now.update else ""
    left = duration(now.left) if doing.state == UNDER_WAY and now.left is not None else ""
    if left and now.update == now.updates:
        left = "being scored"
    return [name, state, update, now.metric, left]
