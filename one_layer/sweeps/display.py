"""Shows how a sweep goes: one live table on a terminal, else a line for each change."""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from one_layer.runs.progress import duration, progress
from one_layer.sweeps.plan import Run
from one_layer.sweeps.queue import FAILED, FINISHED, RUNNING, WAITING, Queue
from one_layer.sweeps.scores import scores

log = logging.getLogger(__name__)

_SECONDS = 1.0  # between two updates of the table
_STATES = (RUNNING, FAILED, "interrupted", FINISHED, WAITING)  # from the top of the table down


class Display:
    """Shows the states of a queue's runs on a console, within the context `shown`."""

    def __init__(self, queue: Queue, console: Console) -> None:
        self._queue, self._console = queue, console
        # Without a thread of its own: the queue starts processes, and a fork among threads may lock up.
        terminal = console.is_terminal
        self._live = Live(console=console, auto_refresh=False, get_renderable=self.table) if terminal else None
        self.shown: AbstractContextManager[object] = (
            self._live or nullcontext()
        )  # at its end, the table is shown once more
        self._looked = 0.0

    def changed(self, runs: list[Run]) -> None:
        """Writes a line for each of these runs, whose states have changed. On a terminal the table shows them."""
        for run in runs if not self._live else []:
            log.info("%s  %s  %s", time.strftime("%H:%M:%S"), run.name, self._words(run))

    def look(self) -> None:
        """Shows the table again if the last one is old enough."""
        if self._live and time.monotonic() - self._looked > _SECONDS:
            self._live.refresh()
            self._looked = time.monotonic()

    def table(self) -> Table:
        """One row for each run. If they do not fit, finished and waiting ones are left out and only counted."""
        states = self._queue.states
        counts = Counter(states.values())
        title = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
        table = Table("run", "state", "update", "metric", "time left", title=title, title_justify="left")
        runs = sorted(self._queue.plan.runs, key=lambda run: _STATES.index(states[run.name]))
        room = max(self._console.height - 6, 3)
        for run in runs[:room]:
            table.add_row(*map(Text, (run.name, states[run.name], *self._cells(run))))  # no markup: [a] is [a]
        if len(runs) > room:
            table.add_row(f"and {len(runs) - room} more", "", "", "", "")
        return table

    def _cells(self, run: Run) -> tuple[str, str, str]:
        state = self._queue.states[run.name]
        if state == FINISHED:
            return "", scores(run), ""
        if state == FAILED:
            return "", self._queue.problems[run.name], ""
        now = progress(run.paths, run.config["train"])
        if not now.update:
            return "", "", ""
        update = f"{now.update:,}" + (f" of {now.updates:,}" if now.updates else "")
        return update, now.metric, "" if state != RUNNING or now.left is None else duration(now.left)

    def _words(self, run: Run) -> str:
        state = self._queue.states[run.name]
        more = scores(run) if state == FINISHED else self._queue.problems.get(run.name, "")
        return f"{state}: {more}" if more else state
