"""How two runs differ: the keys of their configs, their scores, and what they cost, as plain tables."""

import json
from functools import partial
from typing import Any

from one_layer.report import naming
from one_layer.report.comparable import alike
from one_layer.report.point import Scored
from one_layer.report.points import points
from one_layer.report.reading import Record, alike_in_time
from one_layer.report.tables import Table
from one_layer.runs.convergence import merit
from one_layer.runs.records import changes_scores
from one_layer.system.removed import is_idle

ABSENT = "-"


def keys(first: Record, second: Record) -> Table:
    """The keys whose values are others in the two runs, those that can change a score first; without keys that are gone and did nothing."""
    configs = [
        {name: value for name, value in each.config.items() if not is_idle(name, value)} for each in (first, second)
    ]
    names = [name for name in {**configs[0], **configs[1]} if configs[0].get(name) != configs[1].get(name)]
    rows = [
        [name, *(_value(record, name) for record in (first, second)), "" if changes_scores(name) else "no score"]
        for name in sorted(names, key=lambda name: (not changes_scores(name), name))
    ]
    caption = f"A key that a run does not have is shown as {ABSENT}: the run is of another version, or of another task."
    return Table("Keys that differ", caption, ["key", "first", "second", "changes"], rows)


def _value(record: Record, name: str) -> str:
    return json.dumps(record.config[name], ensure_ascii=False) if name in record.config else ABSENT


def scores(first: Record, second: Record) -> Table:
    """The test scores that both runs have of the same content, by the same measure, checkpoint and search; and the best validation scores
    where they are of the same text. What only one run has is in no row, but in the caption.
    """
    found: dict[Scored, dict[str, float]] = {}
    for point in points([first, second]):
        for record, value in zip(point.records, point.values, strict=True):
            found.setdefault(point.scored, {})[record.place] = value
    names = first.place, second.place
    both = {scored: values for scored, values in found.items() if len(values) == 2}
    rows = [
        [
            scored.bench.title,
            ", ".join(filter(None, [scored.checkpoint, scored.more])),
            *_three([values[name] for name in names], scored.bench.measure),
        ]
        for scored, values in both.items()
    ]
    alone = [f"{scored.bench.title} ({scored.checkpoint})" for scored in found if scored not in both]
    caption = f"Only one of the runs has {', '.join(alone)}." if alone else ""
    rows += _best_on_valid(first, second)
    return Table("Scores", caption, ["score", "checkpoint", "first", "second", "difference", "better"], rows)


def _best_on_valid(first: Record, second: Record) -> list[list[str]]:
    score = first.select
    if score != second.select or not alike(second, first, score):
        return []
    lines = [record.evaluated(score) for record in (first, second)]
    if not all(lines):
        return []
    values = [max((line[f"valid/{score}"] for line in each), key=partial(merit, score)) for each in lines]
    return [[f"{score} on valid", "best", *_three(values, score)]]


def _three(values: list[float], score: str) -> list[str]:
    """Two values, their difference, and which is better."""
    difference = values[1] - values[0]
    better = "" if not difference else "second" if merit(score, difference) > 0 else "first"
    return [*(f"{value:.4g}" for value in values), f"{difference:+.4g}", better]


def costs(first: Record, second: Record) -> Table:
    """What the runs cost, and what the runs that they need cost. Seconds of unlike devices are shown, and not compared."""
    rows = []
    for name, key in (("updates", "steps"), ("seconds", "train_seconds"), ("operations", "train_flops")):
        values = [record.result.get(key) for record in (first, second)]
        compared = key != "train_seconds" or alike_in_time([first, second])
        rows.append([name, *map(_number, values), _ratio(*values) if compared else "other devices"])
    skipped = [record.result.get("skipped_updates", 0) for record in (first, second)]
    if any(skipped):
        rows.append(["updates that were skipped", *map(_number, skipped), ""])
    sizes = [record.result.get("bytes", {}).get("ticket_file") for record in (first, second)]
    rows.append(["bytes of the ticket", *map(_number, sizes), _ratio(*sizes)])
    rows.append(["device", *(str(record.result.get("device") or ABSENT) for record in (first, second)), ""])
    if first.sources or second.sources:
        rows.append(["needs", *(naming.described(record.sources) or "no other run" for record in (first, second)), ""])
    caption = "The cost of the runs that a run needs is not in its own."
    return Table("Cost", caption, ["what", "first", "second", "second / first"], rows)


def _number(value: Any) -> str:
    if value is None:
        return ABSENT
    return f"{value:.3g}" if abs(value) >= 1e9 else f"{value:,.0f}"


def _ratio(first: float | None, second: float | None) -> str:
    return f"{second / first:.3f}" if first and second is not None else ""
