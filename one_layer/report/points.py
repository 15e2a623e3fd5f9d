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
from typing import Any

from one_layer.report import naming
from one_layer.report.measures import MEASURES
from one_layer.report.reading import Record
from one_layer.runs.records import changes_scores

_SEARCH = ("beam", "length_penalty", "max_length_a", "max_length_b", "stride")
_TEXT = "text of training"

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


_Key = tuple[Bench, str, str, str, Setting]  # what makes a point: bench, checkpoint, layers, search and setting


@dataclass(frozen=True)
class Point:
    """Scores of runs with one setting: a value for each finished run, and the runs that have not finished.

    `checkpoint` says which checkpoint was scored, `layers` which of its layers, if some were left out, and `search` how. `config` is that
    of one of the runs.
    """

    bench: Bench
    checkpoint: str
    layers: str
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
    def whole(self) -> bool:
        """Whether this is the best checkpoint with all its layers, which figures show."""
        return _is_whole(self.checkpoint, self.layers)

    @property
    def scored(self) -> str:
        """What was scored, for people: the checkpoint, and the layers that stay if some were left out."""
        return f"{self.checkpoint}, {self.layers}" if self.layers else self.checkpoint

    @property
    def name(self) -> str:
        """The model in words, with the fingerprint of its training text if runs that are else alike were trained on other text."""
        text = dict(self.setting).get(_TEXT, "")
        return f"{naming.model(self.config)}{text and f'; trained on {text[:8]}'}"

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
        return _without(self.setting, names)

    @property
    def bytes(self) -> tuple[int, bool] | None:
        """The bytes of the model, and whether a file was measured. If a dense model has no file, its bytes are counted."""
        for record in self.records:
            for values in record.evaluations:
                if "file_bytes" in values and (values["checkpoint"], _layers(values)) == (self.checkpoint, self.layers):
                    return int(values["file_bytes"]), True
            if not self.whole:
                continue
            counted = record.result.get("bytes", {})
            if self.masked and "ticket_file" in counted:
                return int(counted["ticket_file"]), True
            if not self.masked and "dense_float32" in counted:
                return int(counted["dense_float32"]), False
        return None


def points(records: list[Record]) -> list[Point]:
    """All points of all benches. A run that has not finished counts as missing on the benches of the runs beside it."""
    found: dict[_Key, list[tuple[Record, float]]] = {}
    settings = _settings(records)
    for record in records:
        for bench, checkpoint, layers, search, value in _scores(record):
            known = found.setdefault((bench, checkpoint, layers, search, settings[record.folder]), [])
            if all(other.folder != record.folder for other, _ in known):  # result.json and evaluation-*.json may agree
                known.append((record, value))
    missing = [record for record in records if not record.result]
    for record in missing:
        for bench, checkpoint, layers, search in {key[:4] for key in found if _beside(record, key[0], found)}:
            if _is_whole(checkpoint, layers):
                found.setdefault((bench, checkpoint, layers, search, settings[record.folder]), [])
    absent: dict[Setting, list[Record]] = {}
    for record in missing:
        absent.setdefault(settings[record.folder], []).append(record)
    return [
        _point(key, scored, tuple(absent.get(key[-1], ())))
        for key, scored in sorted(found.items(), key=lambda item: _order(item[0]))
    ]


def _is_whole(checkpoint: str, layers: str) -> bool:
    return checkpoint == "best" and not layers


def _point(key: _Key, scored: list[tuple[Record, float]], missing: tuple[Record, ...]) -> Point:
    """A point. `missing`: the runs of its setting that have not finished."""
    bench, checkpoint, layers, search, each = key
    absent = missing if _is_whole(checkpoint, layers) else ()
    config = (scored[0][0] if scored else absent[0]).config
    values, records = tuple(value for _, value in scored), tuple(record for record, _ in scored)
    return Point(bench, checkpoint, layers, search, each, config, values, records, absent)


def _order(key: _Key) -> tuple[Any, ...]:
    bench, *scored, each = key
    return (bench, dict(each).get("model.weights", ""), each, *scored)


def _beside(record: Record, bench: Bench, found: dict[Any, list[tuple[Record, float]]]) -> bool:
    """Whether a run without a result belongs to a bench: a run of the same sweep, with the same test sets, is there."""
    for key, scored in found.items():
        for other, _ in scored if key[0] == bench else []:
            same = other.folder.parent == record.folder.parent and other.get("data.tests") == record.get("data.tests")
            if same and bench.test in (record.get("data.tests") or []):
                return True
    return False


def _settings(records: list[Record]) -> dict[Path, Setting]:
    """The setting of each run, by its folder. If runs alike, but perhaps for keep, have several training texts, it has the text."""
    settings = {record.folder: _setting(record) for record in records}
    texts: dict[Setting, set[str]] = {}
    for record in records:
        texts.setdefault(_without(settings[record.folder], ["model.keep"]), set()).update({record.text} - {""})
    for record in records:
        each = settings[record.folder]
        if len(texts[_without(each, ["model.keep"])]) > 1:
            settings[record.folder] = (*each, (_TEXT, record.text or "unknown"))
    return settings


def _without(setting: Setting, names: Iterable[str]) -> Setting:
    left_out = set(names)
    return tuple((name, value) for name, value in setting if name not in left_out)


def _setting(record: Record) -> Setting:
    """What decides a run's score except the seed: the keys of its config that are not off (False, 0 or empty).

    A key that a later version of the program added is missing in older runs, where what it does was off.
    """
    data = record.result.get("data", {})
    left_out = {"seed", "data.tests"}
    # A fingerprint says what the text is, wherever it lies; a run that has not finished has none yet.
    if data or not record.result or record.get("data.source") == "toy":
        left_out.add("data.directory")
    values = {
        name: value
        for name, value in record.config.items()
        if name not in left_out and changes_scores(name) and "evaluation." not in name
    }
    return tuple((name, json.dumps(value, sort_keys=True)) for name, value in sorted(values.items()) if value)


def _scores(record: Record) -> list[tuple[Bench, str, str, str, float]]:
    """(bench, checkpoint, layers, search, value) of every score of a run."""
    found = []
    own = {name: record.get(f"evaluation.{name}") for name in _SEARCH}
    scored = [(test, {"checkpoint": "best", **own, **values}) for test, values in record.result.get("test", {}).items()]
    scored += [(str(values.get("split")), values) for values in record.evaluations]
    for test, values in scored:
        measure = next((name for name in MEASURES if name in values), None)
        if measure is None:
            continue
        content = values.get("fingerprint") or record.result.get("data", {}).get(test) or _described(record, values)
        bench = Bench(record.task, test, content, measure, str(values.get("signature", "")))
        found.append((bench, values["checkpoint"], _layers(values), _search(values), float(values[measure])))
    return found


def _layers(values: dict[str, Any]) -> str:
    """The layers that stay, for people, if some are left out: `layers 1.3 of the encoder`."""
    return ", ".join(f"layers {numbers} of the {stack}" for stack, numbers in values.get("layers", {}).items())


def _search(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {values[name]:g}" for name in _SEARCH if values.get(name) is not None)


def _described(record: Record, values: dict[str, Any]) -> str:
    """What is known of a test set without its fingerprint: where it comes from, its languages and its size."""
    names = ("source", "directory", "tfds_name", "source_language", "target_language", "labels", "lowercase")
    size = values.get("sentences", values.get("texts"))
    return ", ".join([*(str(record.get(f"data.{name}") or "") for name in names), str(size)])
