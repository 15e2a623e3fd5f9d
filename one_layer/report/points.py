"""Groups the scores of runs: what can be compared, and what is a mean over seeds.

A mean is taken over runs that differ in nothing but the seed. Points share an axis only if they were scored on the same test set, by the
same measure with the same signature.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from one_layer.report import naming
from one_layer.report.measures import MEASURES
from one_layer.report.reading import Record
from one_layer.runs.records import changes_scores

_SEARCH = ("beam", "length_penalty", "max_length_a", "max_length_b", "stride")
_KEEP = "model.keep"

Setting = tuple[tuple[str, str], ...]


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
    def title(self) -> str:
        """A name for people."""
        return f"{self.test}{f' ({self.more})' if self.more else ''}, {MEASURES[self.measure].name}"


@dataclass(frozen=True, order=True)
class Scored:
    """What was scored and how: the bench, the checkpoint, which layers stay if some were left out, and the search."""

    bench: Bench
    checkpoint: str
    layers: str
    search: str

    @property
    def whole(self) -> bool:
        """Whether this is the best checkpoint with all its layers, which figures show."""
        return self.checkpoint == "best" and not self.layers


@dataclass(frozen=True)
class Point:
    """Scores of runs with one setting: a value for each finished run, and the runs that have not finished.

    `config` is that of one of the runs. `name` is the model in words; it tells a point from all others of its bench that have another
    setting, but for keep.
    """

    scored: Scored
    setting: Setting
    name: str
    config: dict[str, Any]
    values: tuple[float, ...]
    records: tuple[Record, ...]
    missing: tuple[Record, ...]

    @property
    def bench(self) -> Bench:
        """What makes the scores comparable."""
        return self.scored.bench

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
        return self.scored.whole

    @property
    def checkpoint(self) -> str:
        """The checkpoint for people, with the layers that stay if some were left out."""
        return f"{self.scored.checkpoint}, {self.scored.layers}" if self.scored.layers else self.scored.checkpoint

    @property
    def masked(self) -> bool:
        """Whether the model has masks."""
        return self.config.get("model.weights") != "dense"

    @property
    def keep(self) -> float:
        """The fraction of the random weights that the masks keep."""
        return float(self.config.get(_KEEP, 1.0))

    @property
    def fully_weighted(self) -> bool:
        """Whether every weight of the model is trained: it has neither masks nor reservoirs."""
        return naming.fully_weighted(self.config)

    def without(self, names: Iterable[str]) -> Setting:
        """The setting without the keys `names`."""
        return _without(self.setting, names)

    @property
    def bytes(self) -> tuple[int, bool] | None:
        """The bytes of the model, and whether a file was measured. Without a file, those of a model without masks are counted."""
        for record in self.records:
            for values in record.evaluations:
                same = (values["checkpoint"], _layers(values)) == (self.scored.checkpoint, self.scored.layers)
                if "file_bytes" in values and same:
                    return int(values["file_bytes"]), True
            if not self.whole:
                continue
            counted = record.result.get("bytes", {})
            if "ticket_file" in counted:
                return int(counted["ticket_file"]), True
            # Earlier versions counted no ticket without random weights. It has what a dense model of that shape has.
            key = "dense_float32" if self.fully_weighted and "ticket" not in counted else "ticket"
            if not self.masked and key in counted:
                return int(counted[key]), False
        return None


def points(records: list[Record]) -> list[Point]:
    """All points of all benches. A run that has not finished counts as missing on the benches of the runs beside it."""
    settings = _settings(records)
    found: dict[tuple[Scored, Setting], list[tuple[Record, float]]] = {}
    for record in records:
        for scored, value in _scores(record):
            known = found.setdefault((scored, settings[record.folder]), [])
            if all(other.folder != record.folder for other, _ in known):  # result.json and evaluation-*.json may agree
                known.append((record, value))
    missing: dict[tuple[Scored, Setting], list[Record]] = {}
    for record in (each for each in records if not each.result):
        for scored in {scored for (scored, _), runs in found.items() if _lacks(record, scored, runs)}:
            missing.setdefault((scored, settings[record.folder]), []).append(record)
    keys = sorted(found.keys() | missing.keys(), key=_order)
    first = {_without(settings[record.folder], [_KEEP]): record for record in reversed(records)}
    names = _names(keys, first)
    titled = _titled({scored.bench for scored, _ in keys})
    return [
        _point(
            replace(scored, bench=titled[scored.bench]),
            setting,
            names[scored.bench, _without(setting, [_KEEP])],
            values,
            lost,
        )
        for scored, setting in keys
        for values, lost in [(found.get((scored, setting), []), missing.get((scored, setting), []))]
    ]


def _lacks(record: Record, scored: Scored, finished: list[tuple[Record, float]]) -> bool:
    """Whether a run without a result will be scored so: by its own search, as a finished run of the same sweep with the same test sets."""
    own = scored.whole and scored.search == _search(_own_search(record))
    return (
        own
        and scored.bench.test in (record.get("data.tests") or [])
        and any(
            other.folder.parent == record.folder.parent and other.get("data.tests") == record.get("data.tests")
            for other, _ in finished
        )
    )


def _point(
    scored: Scored, setting: Setting, name: str, values: list[tuple[Record, float]], missing: list[Record]
) -> Point:
    config = (values[0][0] if values else missing[0]).config
    numbers, records = tuple(value for _, value in values), tuple(record for record, _ in values)
    return Point(scored, setting, name, config, numbers, records, tuple(missing))


def _order(key: tuple[Scored, Setting]) -> tuple[Any, ...]:
    scored, each = key
    return (scored.bench, dict(each).get("model.weights", ""), each, scored)


def _names(keys: list[tuple[Scored, Setting]], runs: dict[Setting, Record]) -> dict[tuple[Bench, Setting], str]:
    """The names of models, by bench and setting. What differs in keep alone has one name. `runs`: one for each setting without keep."""
    names = {}
    for bench in {scored.bench for scored, _ in keys}:
        models = list(dict.fromkeys(_without(each, [_KEEP]) for scored, each in keys if scored.bench == bench))
        known = [(naming.model(runs[each].config), dict(each), str(runs[each].folder)) for each in models]
        for setting, name in zip(models, naming.told_apart(known), strict=True):
            names[bench, setting] = name
    return names


def _titled(benches: set[Bench]) -> dict[Bench, Bench]:
    """Each bench with what tells it from others of the same test set and measure: of its task, content and signature what differs."""
    titled = {}
    for bench in benches:
        same = [other for other in benches if (other.test, other.measure) == (bench.test, bench.measure)]
        parts = [
            (bench.task, {other.task for other in same}),
            (_short(bench.content), {other.content for other in same}),
            (bench.signature, {other.signature for other in same}),
        ]
        titled[bench] = replace(bench, more=", ".join(part for part, known in parts if len(known) > 1 and part))
    return titled


def _short(content: str) -> str:
    """The beginning of a fingerprint and what follows it; without one, what is known."""
    print_, comma, more = content.partition(",")
    known = re.fullmatch(r"[0-9a-f ]{8,}", print_) is not None
    return (
        f"content {print_[:8]}{comma}{more}"
        if known
        else f"content not known: {', '.join(filter(None, content.split(', ')))}"
    )


def _settings(records: list[Record]) -> dict[Path, Setting]:
    """The setting of each run, by its folder: what decides its score except the seed.

    Where runs whose keys of `data` are alike were trained on several texts, the text is added. A run of a setting and a seed that another
    run has already had is a repetition, which is no further seed.
    """
    settings = {record.folder: _setting(record) for record in records}
    texts: dict[Setting, set[str]] = {}
    for record in records:
        texts.setdefault(_of_data(settings[record.folder]), set()).update({record.text} - {""})
    times: Counter[tuple[Setting, int]] = Counter()
    for record in records:
        each = settings[record.folder]
        if len(texts[_of_data(each)]) > 1:
            text = " ".join(part[:8] for part in record.text.split())  # of parallel text, both sides
            each = (*each, ("training text", text or "unknown"))
        times[each, record.seed] += 1
        if (time := times[each, record.seed]) > 1:
            each = (*each, ("run", f"no. {time} of this seed"))
        settings[record.folder] = each
    return settings


def _of_data(setting: Setting) -> Setting:
    return tuple((name, value) for name, value in setting if name.startswith("data."))


def _without(setting: Setting, names: Iterable[str]) -> Setting:
    left_out = set(names)
    return tuple((name, value) for name, value in setting if name not in left_out)


def _setting(record: Record) -> Setting:
    """The keys of a run's config that decide its score except the seed, and that are not off (False, 0 or empty).

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
        if name not in left_out and changes_scores(name) and _decides(name, record)
    }
    return tuple((name, json.dumps(value, sort_keys=True)) for name, value in sorted(values.items()) if value)


def _decides(name: str, record: Record) -> bool:
    """Whether a key can change the checkpoint: of `evaluation`, those that decide the validation score by which it is chosen."""
    by_nll = name == "evaluation.valid_beam" and record.get("train.select") == "nll"
    return not name.startswith("evaluation.") or (name.startswith("evaluation.valid_") and not by_nll)


def _scores(record: Record) -> list[tuple[Scored, float]]:
    """Every score of a run."""
    found = []
    scores = [
        (test, {"checkpoint": "best", **_own_search(record), **values})
        for test, values in record.result.get("test", {}).items()
    ]
    scores += [(str(values.get("split")), values) for values in record.evaluations]
    for test, values in scores:
        measure = next((name for name in MEASURES if name in values), None)
        if measure is None:
            continue
        content = values.get("fingerprint") or record.result.get("data", {}).get(test) or _described(record, values)
        if record.get("data.mask_share") and record.task == "masked_lm":  # how many tokens are to be found
            content += f", {record.get('data.mask_share'):g} masked"
        bench = Bench(record.task, test, content, measure, str(values.get("signature", "")))
        found.append((Scored(bench, values["checkpoint"], _layers(values), _search(values)), float(values[measure])))
    return found


def _layers(values: dict[str, Any]) -> str:
    """The layers that stay, for people, if some are left out: `layers 1.3 of the encoder`."""
    return ", ".join(f"layers {numbers} of the {stack}" for stack, numbers in values.get("layers", {}).items())


def _own_search(record: Record) -> dict[str, Any]:
    return {name: record.get(f"evaluation.{name}") for name in _SEARCH}


def _search(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {values[name]:g}" for name in _SEARCH if values.get(name) is not None)


def _described(record: Record, values: dict[str, Any]) -> str:
    """What is known of a test set without its fingerprint: where it comes from, its languages and its size."""
    names = ("source", "directory", "tfds_name", "source_language", "target_language", "labels", "lowercase")
    size = values.get("sentences", values.get("texts"))
    return ", ".join([*(str(record.get(f"data.{name}") or "") for name in names), str(size)])
