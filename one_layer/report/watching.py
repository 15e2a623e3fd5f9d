"""Writes a report again and again while its runs go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from one_layer.report.reading import Record, read_runs
from one_layer.report.under_way import works
from one_layer.report.writing import report

log = logging.getLogger(__name__)

_PAUSE = 10.0  # seconds between two looks at the files
_SHARE = 5  # a report takes at most one part in so many of the time: the runs need the machine


def watch(pattern: str, out: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Writes the report, and again whenever files of its runs have changed, until nobody works on them any more.

    The page loads itself anew as long as this goes on. Raises: UserError as `report` does.
    """
    shown: list[Record] = []
    while True:
        records = read_runs(pattern)
        going_on = works(records)
        began = time.perf_counter()
        if records != shown or not going_on:
            report(pattern, out, refresh=_PAUSE if going_on else None)
            shown = records
        if not going_on:
            return
        sleep(max(_PAUSE, (_SHARE - 1) * (time.perf_counter() - began)))
