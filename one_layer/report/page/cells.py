"""Tables as HTML: numbers stand to the right, names are links, and long cells scroll with their table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from one_layer.report.tables import MISSING, Table

_NUMBER = re.compile(r"[-+−]?[\d,]+(\.\d+)?( ?%(?: ± [\d.e+-]+ ?%?)?| ± [\d.e+-]+)?")
_WORDS = ("", MISSING, "never")  # that stand in the place of a number


def html(table: Table, links: Mapping[str, str], anchored: bool = False) -> Markup:
    """The table with its title, without its empty columns.

    A cell that is a key of `links` leads to the row of that name in an `anchored` table, whose first cells are the places of links.
    """
    filled = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    numeric = {place for place in filled if _is_numeric([row[place] for row in table.rows])}
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_class(place in numeric), linked(table.columns[place], links))
        for place in filled
    )
    body = Markup("").join(
        Markup("<tr{}>{}</tr>\n").format(
            Markup(' id="{}"').format(_id(row[0])) if anchored else "",
            Markup("").join(
                Markup("<td{}>{}</td>").format(_class(place in numeric), linked(row[place], {} if anchored else links))
                for place in filled
            ),
        )
        for row in table.rows
    )
    caption = Markup('<p class="caption">{}</p>').format(table.caption) if table.caption else ""
    return Markup(
        '<section class="block"><h3>{}</h3>{}\n<div class="table" tabindex="0"><table>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}</tbody></table></div></section>\n"
    ).format(table.title, caption, head, body)


def linked(text: str, links: Mapping[str, str]) -> Markup:
    """The text, as a link if it is the name of a model or of a run."""
    return Markup('<a href="#{}">{}</a>').format(_id(links[text]), text) if text in links else escape(text)


def _is_numeric(cells: list[str]) -> bool:
    return all(cell in _WORDS or _NUMBER.fullmatch(cell) for cell in cells) and any(map(_NUMBER.fullmatch, cells))


def _class(is_number: bool) -> Markup:
    return Markup(' class="number"') if is_number else Markup("")


def _id(name: str) -> str:
    return re.sub(r"\s", "_", name)
