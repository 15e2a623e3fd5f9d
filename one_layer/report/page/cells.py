"""Tables as HTML: numbers stand to the right, names are links, and long cells scroll with their table."""

from __future__ import annotations

import re
from collections.abc import Mapping

import jinja2
from markupsafe import Markup, escape

from one_layer.report.tables import MISSING, Table

# Texts are shown as they are, and never as HTML.
PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("one_layer.report", "page"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_NUMBER = re.compile(r"[-+−]?[\d,]+(\.\d+)?( ?%(?: ± [\d.e+-]+ ?%?)?| ± [\d.e+-]+)?")
_WORDS = ("", MISSING, "never")  # that stand in the place of a number


def html(table: Table, links: Mapping[str, str], anchored: bool = False) -> Markup:
    """The table with its title, without its empty columns.

    A cell that is a key of `links` leads to the row of that name in an `anchored` table, whose first cells are the places of links.
    """
    filled = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    numeric = {place for place in filled if _is_numeric([row[place] for row in table.rows])}
    shown = {"table": table, "links": links, "anchored": anchored, "filled": filled, "numeric": numeric}
    return Markup(PAGES.get_template("table.html").render(**shown, linked=linked, id_of=_id))


def linked(text: str, links: Mapping[str, str]) -> Markup:
    """The text, as a link if it is the name of a model or of a run."""
    return Markup('<a href="#{}">{}</a>').format(_id(links[text]), text) if text in links else escape(text)


def _is_numeric(cells: list[str]) -> bool:
    return all(cell in _WORDS or _NUMBER.fullmatch(cell) for cell in cells) and any(map(_NUMBER.fullmatch, cells))


def _id(name: str) -> str:
    return re.sub(r"\s", "_", name)
