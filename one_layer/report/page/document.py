"""The page as one file: style, sentences, figures and tables, with no other file, no program and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from one_layer.report.claims import judged
from one_layer.report.figures import Picture
from one_layer.report.page import cells, words
from one_layer.report.point import Bench, Point
from one_layer.report.reading import Record
from one_layer.report.tables import Table

_ANCHORED = ("names", "methods")  # sections whose rows are what the names of models and runs lead to


def page(
    pattern: str,
    records: list[Record],
    names: Mapping[Path, str],
    benches: Mapping[Bench, list[Point]],
    pictures: Sequence[tuple[Picture, str]],
    tables: Mapping[str, Sequence[Table]],
) -> str:
    """The page of a report: its runs, their names by folder, their points by bench, figures with their SVG, and tables by section.

    The bench with the most scores comes first.
    """
    links = {label: point.model for its in benches.values() for point in its for label in (point.label, point.model)}
    links |= {name: str(folder) for folder, name in names.items()}
    missing = sum(not record.result for record in records)
    drawn = [(picture, Markup(drawing)) for picture, drawing in pictures]
    return cells.PAGES.get_template("page.html").render(
        pattern=pattern,
        finished=len(records) - missing,
        missing=missing,
        shared=words.shared([record.config for record in records]),
        settings=cells.html(_settings(records), {}),
        benches=[_bench(bench, points, drawn, links) for bench, points in benches.items()],
        pictures=[each for each in drawn if not _sized(each[0])],
        sections={name: [cells.html(each, links, name in _ANCHORED) for each in its] for name, its in tables.items()},
    )


def _settings(records: Sequence[Record]) -> Table:
    """The keys of the configs that have one value in all runs."""
    first, *others = (record.config for record in records)
    rows = [
        [name, json.dumps(value, ensure_ascii=False)]
        for name, value in sorted(first.items())
        if all(name in its and its[name] == value for its in others)
    ]
    return Table("Settings of all runs", "", ["key", "value"], rows)


def _bench(
    bench: Bench, points: list[Point], pictures: list[tuple[Picture, Markup]], links: Mapping[str, str]
) -> dict[str, Any]:
    """The first screen of one bench, and its number of points."""
    pairs = words.pairs(points)
    return {
        "title": bench.title,
        "count": len(points),
        "cost": [_sentence(each, links) for each in words.cost(points)],
        "masks": [_sentence(each, links) for each in words.masks(points)],
        "pairs": cells.html(pairs, links) if pairs.rows else "",
        "claims": words.claims(judged(points)),
        "figures": [each for each in pictures if _sized(each[0]) and each[0].points[0].bench == bench],
    }


def _sized(picture: Picture) -> bool:
    """Whether a picture shows score against bytes, which stands beside the answers."""
    return picture.name.startswith("bytes")


def _sentence(parts: words.Sentence, links: Mapping[str, str]) -> Markup:
    return Markup("").join(cells.linked(part if isinstance(part, str) else part.label, links) for part in parts)
