"""A point: the scores of runs with one setting, and what they were scored on."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from one_layer.report import naming
from one_layer.report.naming import MEASURES
from one_layer.report.reading import Record
from one_layer.runs.convergence import merit
from one_layer.runs.sources import parts

KEEP = "model.keep"
Setting = tuple[tuple[str, str], ...]  # keys of a config and their values as JSON, sorted


@dataclass(frozen=True, order=True)
class Bench:
    """What makes scores comparable: task, test set, its content (as far as it is known), measure and signature.

    `more` tells it from other benches of the same report that have the same test set and measure; empty if there are none.
    """

    task: str
    test: str
    content: str
    measure: str
    signature: str
    more: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The test set for people."""
        return f"{self.test}{f' ({self.more})' if self.more else ''}"

    @property
    def title(self) -> str:
        """The test set and the measure for people."""
        return f"{self.text}, {MEASURES[self.measure]}"

    def shown(self, value: float) -> str:
        """A value of the measure for people."""
        return f"{value:.{2 if self.measure.startswith('bleu') else 4}f}"


@dataclass(frozen=True, order=True)
class Scored:
    """What was scored and how: the bench, the checkpoint and the search.

    `more` is the search where other scores of the bench have another one; empty if there are none.
    """

    bench: Bench
    checkpoint: str
    search: str
    more: str = field(default="", compare=False)


@dataclass(frozen=True)
class Point:
    """Scores of runs with one setting, at least one: a value for each run.

    `config` is that of one of the runs. `label` is the name of the point among all of the report, and `model` that of its model
    (`one_layer.report.labels`). `own`: the best checkpoint by the search of the run's own evaluation, to which its examples belong.
    """

    scored: Scored
    setting: Setting
    config: dict[str, Any]
    values: tuple[float, ...]
    records: tuple[Record, ...]
    own: bool = False
    label: str = ""
    model: str = ""

    @property
    def bench(self) -> Bench:
        """What makes the scores comparable."""
        return self.scored.bench

    @property
    def description(self) -> str:
        """The model in words, without its keep."""
        return "; ".join(naming.parts(self.config))

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return statistics.fmean(self.values)

    @property
    def merit(self) -> float:
        """The mean as a number of which more is better: with the other sign if less of the measure is better."""
        return merit(self.bench.measure, self.mean)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; None for fewer than two values."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def by_seed(self) -> dict[int, float]:
        """The values by the seeds of their runs."""
        return {record.seed: value for record, value in zip(self.records, self.values, strict=True)}

    @property
    def whole(self) -> bool:
        """Whether this is the best checkpoint, which figures show."""
        return self.scored.checkpoint == "best"

    @property
    def series(self) -> str:
        """The name of the point without its keep: that of the line or of the marks of a picture that it belongs to."""
        return ", ".join(filter(None, [self.model, self.scored.more]))

    @property
    def masked(self) -> bool:
        """Whether the model has masks."""
        return self.config.get("model.weights") != "dense"

    @property
    def keep(self) -> float:
        """The fraction of the random weights that the masks keep."""
        return float(self.config.get(KEEP, 1.0))

    @property
    def fully_weighted(self) -> bool:
        """Whether every weight of the model is trained: it has neither masks nor reservoirs."""
        return naming.fully_weighted(self.config)

    @property
    def bytes(self) -> int:
        """The bytes of the model; 0 where they are not known."""
        return self._size[0]

    @property
    def is_file(self) -> bool:
        """Whether the bytes are those of a file: the largest file of its runs. Else those of a model without masks are counted."""
        return self._size[1]

    @cached_property
    def _size(self) -> tuple[int, bool]:
        if files := [size for record in self.records if (size := self._file_bytes(record)) is not None]:
            return max(files), True
        for record in self.records if self.whole and not self.masked else ():
            counted = record.result.get("bytes", {})
            # Version 0.2 counted no ticket without random weights. It has what a dense model of that shape has.
            key = "dense_float32" if self.fully_weighted and "ticket" not in counted else "ticket"
            if key in counted:
                return int(counted[key]), False
        return 0, False

    def _file_bytes(self, record: Record) -> int | None:
        evaluated = (values for values in record.evaluations if values["checkpoint"] == self.scored.checkpoint)
        scored = [values["file_bytes"] for values in evaluated if "file_bytes" in values]
        own = record.result.get("bytes", {}).get("ticket_file") if self.whole else None
        found = scored[0] if scored else own
        return None if found is None else int(found)

    @property
    def seconds(self) -> float | None:
        """The mean seconds of training, with those of the runs that its runs begin with or learn from, as far as they are known."""
        known = [
            record.result["train_seconds"]
            + sum(each["train_seconds"] or 0.0 for each in parts(record.sources).values())
            for record in self.records
            if "train_seconds" in record.result
        ]
        return statistics.fmean(known) if known else None


def without(setting: Setting, names: Iterable[str]) -> Setting:
    """The setting without the keys `names`."""
    left_out = set(names)
    return tuple((name, value) for name, value in setting if name not in left_out)


def own_first(points: Iterable[Point]) -> list[Point]:
    """The points of best checkpoints, those by a run's own search before those by another one that was tried later."""
    return sorted((point for point in points if point.whole), key=lambda point: not point.own)


Line = tuple[Point, ...]  # the points of one model by one search, at several keeps


def lines_of(points: Iterable[Point]) -> list[Line]:
    """The points by models and searches, in the order of their keeps."""
    found: dict[object, list[Point]] = {}
    for point in points:
        found.setdefault((without(point.setting, [KEEP]), point.scored.search), []).append(point)
    return [tuple(sorted(each, key=lambda point: point.keep)) for each in found.values()]


def alike(lines: Iterable[Line], but: Iterable[str], kinds_apart: bool) -> list[list[Line]]:
    """The lines in groups, each of one search and of models that are alike but for the keys `but`.

    `kinds_apart`: the models of a group have layers of the same kinds; a hybrid is compared with hybrids.
    """
    found: dict[object, list[Line]] = {}
    for line in lines:
        kinds = frozenset(naming.letters(line[0].config)) if kinds_apart else None
        found.setdefault((without(line[0].setting, [*but, KEEP]), line[0].scored.search, kinds), []).append(line)
    return list(found.values())
