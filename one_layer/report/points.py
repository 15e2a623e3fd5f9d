"""Groups the scores of runs: what can be compared, and what is a mean over seeds.

A mean is taken over runs that differ in nothing but the seed. Points share an axis only if they were scored on the same test set, by the
same measure with the same signature.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from one_layer.report import texts
from one_layer.report.labels import labelled, labels
from one_layer.report.naming import MEASURES
from one_layer.report.point import Bench, Point, Scored, Setting
from one_layer.report.reading import Record
from one_layer.runs.records import LATER, PLACES_OF_TEXT, changes_scores

_SEARCH = ("beam", "length_penalty", "max_length_a", "max_length_b", "stride")


def points(records: list[Record]) -> list[Point]:
    """All points of all benches. A run that has no score is in none of them."""
    settings = settings_of(records)
    found: dict[tuple[Scored, Setting], list[tuple[Record, float]]] = {}
    own: set[tuple[Scored, Setting]] = set()
    for record in records:
        for scored, value, by_itself in _scores(record):
            key = scored, settings[record.folder]
            if by_itself:
                own.add(key)
            known = found.setdefault(key, [])
            if all(other.folder != record.folder for other, _ in known):  # result.json and evaluation-*.json may agree
                known.append((record, value))
    keys = sorted(found, key=_order)
    titled = _titled({scored.bench for scored, _ in keys})
    searches = {(scored.bench, scored.search) for scored, _ in keys if scored.search}
    several = {bench for bench, times in Counter(bench for bench, _ in searches).items() if times > 1}
    every = [
        Point(
            replace(scored, bench=titled[scored.bench], more=scored.search if scored.bench in several else ""),
            setting,
            config=found[scored, setting][0][0].described,
            values=tuple(value for _, value in found[scored, setting]),
            records=tuple(record for record, _ in found[scored, setting]),
            own=(scored, setting) in own,
        )
        for scored, setting in keys
    ]
    return labelled(every, labels(records, settings))


def _order(key: tuple[Scored, Setting]) -> tuple[Any, ...]:
    scored, each = key
    return (scored.bench, dict(each).get("model.weights", ""), each, scored)


def _titled(benches: set[Bench]) -> dict[Bench, Bench]:
    """Each bench with what tells it from others of the same test set and measure: of its task, content and signature what differs.

    Signatures are called A, B and so on; the details have them in full.
    """
    titled = {}
    for bench in benches:
        same = [other for other in benches if (other.test, other.measure) == (bench.test, bench.measure)]
        contents, signatures = {other.content for other in same}, {other.signature for other in same}
        parts = [
            (bench.task, {other.task for other in same}),
            (texts.named(bench.content), contents),
            (f"signature {chr(ord('A') + sorted(signatures).index(bench.signature))}", signatures),
        ]
        titled[bench] = replace(bench, more=", ".join(part for part, known in parts if len(known) > 1 and part))
    return titled


def settings_of(records: list[Record]) -> dict[Path, Setting]:
    """The setting of each run, by its folder: what decides its score except the seed.

    Where runs whose keys of `data` are alike were trained on several texts, or validated on several, the text is added. A run of a
    setting and a seed that another run has already had is a repetition, which is no further seed.
    """
    settings = {record.folder: _setting(record) for record in records}
    for part, name in texts.PARTS.items():
        known: dict[Setting, set[str]] = {}
        for record in records:
            known.setdefault(_of_text(settings[record.folder]), set()).update({record.texts.get(part, "")} - {""})
        for record in records:
            each = settings[record.folder]
            if len(known[_of_text(each)]) > 1:
                settings[record.folder] = (*each, (name, texts.short(record.texts.get(part, "")) or texts.UNKNOWN))
    times: Counter[tuple[Setting, int]] = Counter()
    # Finished runs come first, so that none that was given up is the first of its seed.
    for record in sorted(records, key=lambda record: not record.result):
        each = settings[record.folder]
        times[each, record.seed] += 1
        if (time := times[each, record.seed]) > 1:
            each = (*each, ("run", f"no. {time} of this seed"))
        settings[record.folder] = each
    return settings


def _of_text(setting: Setting) -> Setting:
    return tuple((name, value) for name, value in setting if name.startswith("data.") or name == texts.TRAINING)


def _setting(record: Record) -> Setting:
    """The keys of a run's config that decide its score except the seed, and that are not off (False, 0 or empty).

    A key that a later version of the program added is missing in older runs. So it is left out where it says what the program did before.
    """
    data = record.result.get("data", {})
    left_out = {"seed", "data.tests"}
    # A fingerprint says what the text is, wherever it lies; a run that has not finished has none yet.
    if data or not record.result or record.get("data.source") == "toy":
        left_out |= set(PLACES_OF_TEXT)
    values = {
        name: value
        for name, value in record.config.items()
        if name not in left_out and changes_scores(name) and _decides(name, record)
    }
    decisive = {name: value for name, value in values.items() if value and value != LATER.get(name)}
    return tuple((name, json.dumps(value, sort_keys=True)) for name, value in sorted(decisive.items()))


def _decides(name: str, record: Record) -> bool:
    """Whether a key can change the checkpoint: of `evaluation`, those that decide the validation score by which it is chosen."""
    by_nll = name == "evaluation.valid_beam" and record.get("train.select") == "nll"
    return not name.startswith("evaluation.") or (name.startswith("evaluation.valid_") and not by_nll)


def _scores(record: Record) -> list[tuple[Scored, float, bool]]:
    """Every score of a run, those of its result and those of its evaluations, and whether it is one of its result."""
    tests = [*record.result.get("test", {}).items(), *((str(each["split"]), each) for each in record.evaluations)]
    found = []
    for test, values in tests:
        measure = next((name for name in MEASURES if name in values), None)
        if measure is None:
            continue
        if by_itself := "checkpoint" not in values:  # a result is of the best one, found by the run's own search
            own = {name: record.get(f"evaluation.{name}") for name in _SEARCH}
            values = {"checkpoint": "best", **own, **values}
        content = texts.content(record, test, values)
        bench = Bench(record.task, test, content, measure, str(values.get("signature", "")))
        found.append((Scored(bench, values["checkpoint"], _search(values)), float(values[measure]), by_itself))
    return found


def _search(values: dict[str, Any]) -> str:
    numbers = [f"{name.replace('_', ' ')} {values[name]:g}" for name in _SEARCH if values.get(name) is not None]
    return ", ".join([*numbers, *([values["engine"]] if "engine" in values else [])])
