"""The data of the page as plain values: models, points, runs with their curves, and which of them each figure shows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from one_layer.report import naming, published, texts
from one_layer.report.comparable import groups, measured
from one_layer.report.figures import KINDS, Comparison, shown
from one_layer.report.labels import Label, kind, place
from one_layer.report.measures import MEASURES
from one_layer.report.page.runs import Run, state, steps
from one_layer.report.plain_text import joined
from one_layer.report.point import KEEP, Bench, Point, Setting, commands, without
from one_layer.report.reading import Record, alike_in_time
from one_layer.report.sizes import frontier, marks

_AXES = ("step", "seconds", "train/flops")
_MOST_OF_TRAINING = 80  # logged updates of one run that its page draws


def values(number: object, digits: int = 5) -> Any:
    """A number with so many digits, and none for one that JSON does not have."""
    if not isinstance(number, int | float):
        return None
    return None if not math.isfinite(number) else number if isinstance(number, int) else float(f"{number:.{digits}g}")


def models(records: Sequence[Record], settings: dict[Path, Setting], labels: dict[Setting, Label]) -> dict[str, Any]:
    """Each model by its short name: its kind, its name in full, and its settings, with the keys in which not all models agree."""
    found: dict[str, tuple[Setting, Record]] = {}
    for record in records:
        setting = settings[record.folder]
        found.setdefault(labels[setting].model, (without(setting, [KEEP]), record))
    every = {name for setting, _ in found.values() for name, _ in setting}
    differing = {name for name in every if len(_known(name, list(found.values()))) > 1}
    return {
        "kinds": {word: place(word) for word in sorted({kind(record.config) for _, record in found.values()})},
        "differing": sorted(differing),
        "named": {
            name: {
                "kind": kind(record.config),
                "full": naming.model(record.config),
                "words": naming.in_words(record.config),
                "settings": dict(setting),
            }
            for name, (setting, record) in found.items()
        },
    }


def _known(name: str, models: Sequence[tuple[Setting, Record]]) -> set[str]:
    """The values of a key in these models; a model of an earlier version, which did not have the key, has none."""
    return {
        json.dumps(record.config[name]) if name in record.config else dict(setting).get(name, "")
        for setting, record in models
        if name in record.config or "." not in name
    }


def bench(each: Bench, points: Sequence[Point], records: Sequence[Record]) -> dict[str, Any]:
    """The points of one bench, and which of them are on the frontier of score against bytes."""
    measure = MEASURES[each.measure]
    folders = {record.folder: place for place, record in enumerate(records)}
    best = {id(mark.point) for mark in frontier(marks(list(points)))}
    return {
        "title": each.title,
        "measure": measure.name,
        "less": measure.less_is_better,
        "digits": 2 if each.measure.startswith("bleu") else 4,
        "points": [{**_point(point, folders), "frontier": id(point) in best} for point in points if point.values],
        "papers": [number._asdict() for number in published.numbers(commands(points))],
    }


def _point(point: Point, folders: dict[Path, int]) -> dict[str, Any]:
    size = point.bytes
    return {
        "label": point.label,
        "model": point.model,
        "keep": point.keep if point.masked else None,
        "mean": values(point.mean),
        "deviation": values(point.deviation),
        "values": [values(value) for value in point.values],
        "bytes": size[0] if size else None,
        "file": bool(size and size[1]),
        "seconds": values(point.seconds),
        "runs": [folders[record.folder] for record in point.records],
        "whole": point.whole,
    }


def keeps(comparisons: Sequence[Comparison], points: Sequence[Point]) -> list[dict[str, Any]]:
    """The figures of score against keep, in the order of paper A: of each, the panels with enough keeps, by the places of `points`."""
    places = {id(point): place for place, point in enumerate(point for point in points if point.values)}
    titles = {kind.name: kind.title for kind in KINDS}
    found: dict[str, list[Any]] = {}
    for each in shown(comparisons)[0]:
        lines = [
            {"name": line.name, "points": [places[id(point)] for point in line.points if point.values]}
            for line in each.lines
        ]
        dense = [places[id(point)] for point in each.dense if point.values]
        models = [line.points[0].model for line in each.lines]
        panel = {
            "where": each.where,
            "models": models,
            "lines": [line for line in lines if line["points"]],
            "dense": dense,
        }
        found.setdefault(each.kind, []).append(panel)
    for panels in found.values():
        _name(panels)
    return [
        {"kind": kind, "title": titles.get(kind, "Score against keep"), "panels": panels}
        for kind, panels in found.items()
    ]


def _name(panels: list[Any]) -> None:
    """Names the panels of one figure, if there are several, by the words that the names of their models share."""
    words = [
        " ".join(word for word in each["models"][0].split() if all(word in m.split() for m in each["models"]))
        for each in panels
    ]
    for each, short in zip(panels, words, strict=True):
        each["where"] = "" if len(panels) == 1 else short if words.count(short) == 1 else each["where"]
        del each["models"]


def shared(records: Sequence[Record]) -> dict[str, Any]:
    """The keys of the configs that have one value in all runs."""
    first, *others = (record.config for record in records)
    return {name: value for name, value in first.items() if all(name in its and its[name] == value for its in others)}


def lines(records: Sequence[Record]) -> list[tuple[str, str]]:
    """The sources, whose pieces are joined, and the references of all examples, each once: many runs have the same."""
    examples = (line for record in records for each in record.result.get("examples", {}).values() for line in each)
    return list(dict.fromkeys((joined(line["source"]), line["reference"]) for line in examples))


def run(each: Run, known: dict[str, Any], places: dict[tuple[str, str], int]) -> dict[str, Any]:
    """A run: its names, its state, its scores by the titles of benches, its cost, its curves, its examples, and its config but `known`.

    Of an example it has the place of its source and reference in `lines`, and the hypothesis.
    """
    record, result = each.record, each.record.result
    return {
        "name": each.name,
        "label": str(each.label),
        "model": each.label.model,
        "folder": str(record.folder),
        "address": record.address,
        "seed": record.seed,
        "state": state(record),
        "scores": {bench.title: values(score, digits=9) for bench, score in each.scores.items()},
        "bytes": each.size[0] if each.size else None,
        "seconds": values(result.get("train_seconds")),
        "flops": values(result.get("train_flops")),
        "select": record.select,
        "best": values(result.get("valid", {}).get("step")),
        "steps": steps(record),
        "update": record.doing.progress.update or None,
        "device": str(result.get("device") or ""),
        "commit": str(result.get("commit") or "")[:9],
        "begun": naming.described([{**source, "path": Path(source["path"]).name} for source in record.sources]),
        "needs": naming.described(record.sources),
        "command": record.command,
        "config": {name: value for name, value in record.config.items() if name not in known},
        "parameters": result.get("parameters") or {},
        "masks": result.get("masks") or [],
        "examples": {
            test: [[places[joined(line["source"]), line["reference"]], line["hypothesis"]] for line in its]
            for test, its in result.get("examples", {}).items()
        },
        "curve": curve(record),
        "training": _training(record),
    }


def curve(record: Record) -> dict[str, list[Any]]:
    """The evaluations of a run: the axes, nll, the score that selects, and the share of mask entries that changed."""
    lines = [line for line in record.metrics if "valid/nll" in line]
    names = {"nll": "valid/nll", "score": f"valid/{record.select}", "flips": "mask/flips"}
    names |= dict(zip(("step", "seconds", "flops"), _AXES, strict=True))
    found = {short: [values(line.get(name)) for line in lines] for short, name in names.items()}
    return {name: column for name, column in found.items() if any(value is not None for value in column)}


def _training(record: Record) -> dict[str, list[Any]]:
    """Some of the logged updates of a run: the training loss."""
    lines = [line for line in record.metrics if "train/nll" in line]
    kept = lines[:: -(-len(lines) // _MOST_OF_TRAINING) or 1]
    return {"step": [line["step"] for line in kept], "nll": [values(line["train/nll"]) for line in kept]}


def convergence(records: Sequence[Record], letters: Mapping[str, str]) -> list[dict[str, Any]]:
    """The runs whose curves can be drawn together: those validated on one text, by its ids, and measured alike.

    `letters` are those of the texts of the report.
    """
    places = {record.folder: place for place, record in enumerate(records)}
    found = groups([record for record in records if any("valid/nll" in line for line in record.metrics)], "nll")
    names = texts.told_apart([texts.validated(measured(each, "nll"), letters) for each in found])
    return [
        {
            "of": name,
            "runs": [places[record.folder] for record in each],
            "seconds": alike_in_time(each),
        }
        for each, name in zip(found, names, strict=True)
    ]
