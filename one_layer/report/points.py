"""Groups the scores of runs: what can be compared, and what is a mean over seeds.

A mean is taken over runs that differ in nothing but the seed. Points share an axis only if they were scored on the same test set, by the
same measure with the same signature.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from one_layer.report.reading import Record


class Measure(NamedTuple):
    """A measure: its name for people, and whether less of it is better."""

    name: str
    less_is_better: bool = False


# The measures that figures show, by their keys in the scores. Of several, a figure shows the first.
MEASURES = {
    "bleu_tokenized": Measure("tokenised BLEU"),
    "accuracy": Measure("accuracy"),
    "matthews": Measure("Matthews' correlation"),
    "nll": Measure("nll", less_is_better=True),
}
# Keys that change no score. Where the text lies does not count if a fingerprint says what it is.
_WITHOUT_EFFECT = ("data.store", "data.tests", "train.log_every", "train.stall_minutes", "train.keep_last")
_SEARCH = ("beam", "length_penalty", "max_length_a", "max_length_b")

Setting = tuple[tuple[str, str], ...]


@dataclass(frozen=True, order=True)
class Bench:
    """What makes scores comparable: task, test set, its content (as far as it is known), measure and signature."""

    task: str
    test: str
    content: str
    measure: str
    signature: str

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{self.test}, {MEASURES[self.measure].name}"


@dataclass(frozen=True)
class Point:
    """Scores of runs with one setting: a value for each finished run, and the runs that have not finished.

    `checkpoint` says which checkpoint was scored, `search` how. `config` is that of one of the runs.
    """

    bench: Bench
    checkpoint: str
    search: str
    setting: Setting
    config: dict[str, Any]
    values: tuple[float, ...]
    records: tuple[Record, ...]
    missing: tuple[Record, ...]

    @property
    def mean(self) -> float | None:
        """The mean of the values; None without any."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def merit(self) -> float | None:
        """The mean as a number of which more is better: with the other sign if less of the measure is better."""
        return -self.mean if self.mean is not None and MEASURES[self.bench.measure].less_is_better else self.mean

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; None for fewer than two values."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def masked(self) -> bool:
        """Whether the model has masks."""
        return self.config.get("model.weights") != "dense"

    @property
    def keep(self) -> float:
        """The fraction of the random weights that the masks keep."""
        return float(self.config.get("model.keep", 1.0))

    def without(self, names: Iterable[str]) -> Setting:
        """The setting without the keys `names`."""
        left_out = set(names)
        return tuple((name, value) for name, value in self.setting if name not in left_out)

    @property
    def bytes(self) -> tuple[int, bool] | None:
        """The bytes of the model, and whether a file was measured. If a dense model has no file, its bytes are counted."""
        for record in self.records:
            for values in record.evaluations:
                if "file_bytes" in values and _checkpoint(values) == self.checkpoint:
                    return int(values["file_bytes"]), True
            if self.checkpoint != "best":
                continue
            counted = record.result.get("bytes", {})
            if self.masked and "ticket_file" in counted:
                return int(counted["ticket_file"]), True
            if not self.masked and "dense_float32" in counted:
                return int(counted["dense_float32"]), False
        return None


def points(records: list[Record]) -> list[Point]:
    """All points of all benches. A run that has not finished counts as missing on the benches of the runs beside it."""
    found: dict[tuple[Bench, str, str, Setting], list[tuple[Record, float]]] = {}
    for record in records:
        for bench, checkpoint, search, value in _scores(record):
            known = found.setdefault((bench, checkpoint, search, setting(record)), [])
            if all(other.folder != record.folder for other, _ in known):  # result.json and evaluation-*.json may agree
                known.append((record, value))
    missing = [record for record in records if not record.result]
    for record in missing:
        for bench, checkpoint, search in {key[:3] for key in found if _beside(record, key[0], found)}:
            if checkpoint == "best":
                found.setdefault((bench, checkpoint, search, setting(record)), [])
    return [_point(key, scored, missing) for key, scored in sorted(found.items(), key=lambda item: _order(item[0]))]


def _point(key: tuple[Bench, str, str, Setting], scored: list[tuple[Record, float]], missing: list[Record]) -> Point:
    bench, checkpoint, search, each = key
    absent = tuple(record for record in missing if setting(record) == each) if checkpoint == "best" else ()
    config = (scored[0][0] if scored else absent[0]).config
    values, records = tuple(value for _, value in scored), tuple(record for record, _ in scored)
    return Point(bench, checkpoint, search, each, config, values, records, absent)


def _order(key: tuple[Bench, str, str, Setting]) -> tuple[Any, ...]:
    values = dict(key[3])
    return (key[0], values.get("model.weights", ""), key[3], key[1], key[2])


def _beside(record: Record, bench: Bench, found: dict[Any, list[tuple[Record, float]]]) -> bool:
    """Whether a run without a result belongs to a bench: a run of the same sweep, with the same test sets, is there."""
    for key, scored in found.items():
        for other, _ in scored if key[0] == bench else []:
            same = other.folder.parent == record.folder.parent and other.get("data.tests") == record.get("data.tests")
            if same and bench.test in (record.get("data.tests") or []):
                return True
    return False


def setting(record: Record) -> Setting:
    """What decides a run's score except the seed: the keys of its config that are not off (False, 0 or empty).

    A key that a later version of the program added is missing in older runs, where what it does was off.
    """
    data = record.result.get("data", {})
    left_out = {"seed", *_WITHOUT_EFFECT} | (
        {"data.directory"} if data or record.get("data.source") == "toy" else set()
    )
    values = {
        name: value for name, value in record.config.items() if name not in left_out and "evaluation." not in name
    }
    return tuple((name, json.dumps(value, sort_keys=True)) for name, value in sorted(values.items()) if value)


def _scores(record: Record) -> list[tuple[Bench, str, str, float]]:
    """(bench, checkpoint, search, value) of every score of a run."""
    found = []
    own = {name: record.get(f"evaluation.{name}") for name in _SEARCH}
    scored = [(test, "best", own, values) for test, values in record.result.get("test", {}).items()]
    for values in record.evaluations:
        scored.append((str(values.get("split")), _checkpoint(values), values, values))
    for test, checkpoint, search, values in scored:
        measure = next((name for name in MEASURES if name in values), None)
        if measure is None:
            continue
        content = record.result.get("data", {}).get(test) or _described(record, values)
        bench = Bench(record.task, test, content, measure, str(values.get("signature", "")))
        found.append((bench, checkpoint, _search(search), float(values[measure])))
    return found


def _checkpoint(values: dict[str, Any]) -> str:
    """Which checkpoint was evaluated, or the name of the ticket's file."""
    return Path(str(values.get("checkpoint", "best"))).name


def _search(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {values[name]:g}" for name in _SEARCH if values.get(name) is not None)


def _described(record: Record, values: dict[str, Any]) -> str:
    """What is known of a test set without its fingerprint: where it comes from, its languages and its size."""
    names = ("source", "directory", "tfds_name", "source_language", "target_language", "labels", "lowercase")
    size = values.get("sentences", values.get("texts"))
    return ", ".join([*(str(record.get(f"data.{name}") or "") for name in names), str(size)])
