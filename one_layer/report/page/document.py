"""The page as one file: style, sentences, tables, data and program, with no other file and no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from one_layer.report import texts
from one_layer.report.claims import judged
from one_layer.report.figures import Comparison, Picture
from one_layer.report.labels import labels
from one_layer.report.page import cells, content, words
from one_layer.report.page.runs import Run, runs_of, table
from one_layer.report.point import Bench, Point
from one_layer.report.points import settings_of
from one_layer.report.reading import Record
from one_layer.report.reservoir_claims import judged_areas, judged_scores
from one_layer.report.tables import Table
from one_layer.report.verdicts import Judged

SCRIPTS = ("dom.js", "state.js", "axes.js", "chart.js", "figures.js", "tables.js", "runs.js", "compare.js", "start.js")


class Report(NamedTuple):
    """What a page shows: the runs, their points and comparisons by bench, the figures that have files, and the tables.

    Those are by section, each with the bench that it is about, or None if it is about all.
    """

    pattern: str
    records: list[Record]
    benches: Mapping[Bench, list[Point]]
    compared: Mapping[Bench, list[Comparison]]
    pictures: Sequence[Picture]
    tables: Mapping[str, Sequence[tuple[Bench | None, Table]]]


def page(report: Report) -> str:
    """The page of a report."""
    settings = settings_of(report.records)
    names = labels(report.records, settings)
    runs = runs_of(report.records, report.benches)
    benches = sorted(report.benches, key=lambda bench: -sum(bool(point.values) for point in report.benches[bench]))
    links = _links(report, runs)
    lines = content.lines(report.records)
    places = {line: place for place, line in enumerate(lines)}
    data = {
        **content.models(report.records, settings, names),
        "benches": [content.bench(bench, report.benches[bench], report.records) for bench in benches],
        "keeps": [content.keeps(report.compared[bench], report.benches[bench]) for bench in benches],
        "convergence": content.convergence(report.records, texts.letters(report.records)),
        "config": (shared := content.shared(report.records)),
        "lines": lines,
        "runs": [content.run(run, shared, places) for run in runs],
    }
    script = "".join(_file(name) for name in SCRIPTS)
    missing = sum(not record.result for record in report.records)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_file("page.html")).render(
        pattern=report.pattern,
        finished=len(report.records) - missing,
        missing=missing,
        shared=words.shared([record.config for record in report.records]),
        settings=cells.html(_settings(shared), {}),
        benches=[_bench(bench, report, links) for bench in benches],
        runs=cells.html(table(runs, benches), links),
        pictures=report.pictures,
        sections={
            name: [(None if bench is None else benches.index(bench), cells.html(each, links)) for bench, each in its]
            for name, its in report.tables.items()
        },
        style=Markup(_file("page.css")),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")),
    )


def _settings(shared: Mapping[str, Any]) -> Table:
    rows = [[name, json.dumps(value, ensure_ascii=False)] for name, value in sorted(shared.items())]
    return Table("Settings of all runs", "", ["key", "value"], rows)


def _links(report: Report, runs: Sequence[Run]) -> dict[str, str]:
    """Where names in cells lead: those of models to the settings of the model, those of runs, and their folders, to the run."""
    links = {
        label: point.model for its in report.benches.values() for point in its for label in (point.label, point.model)
    }
    return links | {
        name: f"#run-{place}" for place, run in enumerate(runs) for name in (run.name, str(run.record.folder))
    }


def _bench(bench: Bench, report: Report, links: Mapping[str, str]) -> dict[str, Any]:
    """The first screen of one bench, and its number of finished points."""
    points = report.benches[bench]
    pairs = words.pairs(points)
    return {
        "title": bench.title,
        "count": sum(bool(point.values) for point in points),
        "cost": [_sentence(each, links) for each in words.cost(points)],
        "masks": [_sentence(each, links) for each in words.masks(points)],
        "pairs": cells.html(pairs, links) if pairs.rows else "",
        "claims": words.claims(_judged(bench, report)),
    }


def _judged(bench: Bench, report: Report) -> Iterator[Judged]:
    points = report.benches[bench]
    yield from judged(bench, report.compared[bench])
    yield from judged_scores(points)
    yield from (each for _, _, each in judged_areas(points))


def _sentence(parts: words.Sentence, links: Mapping[str, str]) -> Markup:
    return Markup("").join(cells.linked(part if isinstance(part, str) else part.label, links) for part in parts)


def _file(name: str) -> str:
    return resources.files("one_layer.report.page").joinpath(name).read_text("utf-8")
