"""The page as one file: style, sentences, figures and tables, with no other file, no program and no network."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from one_layer.report.claims import judged
from one_layer.report.figures import Picture
from one_layer.report.page import words
from one_layer.report.point import Bench, Point
from one_layer.report.reading import Record
from one_layer.report.tables import MISSING, Table

# Texts are shown as they are, and never as HTML.
_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("one_layer.report", "page"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_NUMBER = re.compile(r"[-+−]?[\d,]+(\.\d+)?( ?%(?: ± [\d.e+-]+ ?%?)?| ± [\d.e+-]+)?")
_WORDS = ("", MISSING, "never")  # that stand in the place of a number
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
    return _PAGES.get_template("page.html").render(
        pattern=pattern,
        finished=len(records) - missing,
        missing=missing,
        shared=words.shared([record.config for record in records]),
        settings=html(_settings(records), {}),
        benches=[_bench(bench, points, drawn, links) for bench, points in benches.items()],
        pictures=[each for each in drawn if not _sized(each[0])],
        sections={name: [html(each, links, name in _ANCHORED) for each in its] for name, its in tables.items()},
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
        "pairs": html(pairs, links) if pairs.rows else "",
        "claims": words.claims(judged(points)),
        "figures": [each for each in pictures if _sized(each[0]) and each[0].points[0].bench == bench],
    }


def _sized(picture: Picture) -> bool:
    """Whether a picture shows score against bytes, which stands beside the answers."""
    return picture.name.startswith("bytes")


def _sentence(parts: words.Sentence, links: Mapping[str, str]) -> Markup:
    return Markup("").join(_linked(part if isinstance(part, str) else part.label, links) for part in parts)


def html(table: Table, links: Mapping[str, str], anchored: bool = False) -> Markup:
    """The table with its title, without its empty columns.

    A cell that is a key of `links` leads to the row of that name in an `anchored` table, whose first cells are the places of links.
    """
    filled = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    numeric = {place for place in filled if _is_numeric([row[place] for row in table.rows])}
    shown = {"table": table, "links": links, "anchored": anchored, "filled": filled, "numeric": numeric}
    return Markup(_PAGES.get_template("table.html").render(**shown, linked=_linked, id_of=_id))


def _linked(text: str, links: Mapping[str, str]) -> Markup:
    """The text, as a link if it is the name of a model or of a run."""
    return Markup('<a href="#{}">{}</a>').format(_id(links[text]), text) if text in links else escape(text)


def _is_numeric(cells: list[str]) -> bool:
    return all(cell in _WORDS or _NUMBER.fullmatch(cell) for cell in cells) and any(map(_NUMBER.fullmatch, cells))


def _id(name: str) -> str:
    return re.sub(r"\s", "_", name)
