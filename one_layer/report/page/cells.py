"""Tables as HTML: numbers stand with their points below each other, names are links, and long cells are cut at three lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from one_layer.report.tables import MISSING, Table

_NUMBER = re.compile(r"([-+−]?[\d,]+)(\.\d+)?( ?%(?: ± [\d.e+-]+ ?%?)?| ± [\d.e+-]+)?")
_WORDS = (MISSING, "never")  # that stand in the place of a number
_DIGIT, _POINT = "\u2007", "\u2008"  # spaces as wide as a digit, and as a point
_WIDE = 24  # characters: a cell that has more gets the room for three lines at most
_LONG = 60  # characters: a cell that has more may be cut, and opens with a click


def html(table: Table, links: Mapping[str, str]) -> Markup:
    """The table with its title, without its empty columns.

    A cell, or the head of a column, that is the name of a model or a run is a link to it (`links`).
    """
    filled = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    columns = [[row[place] for row in table.rows] for place in filled]
    shown = [_aligned(cells) for cells in columns]
    numeric = [cells is not None for cells in shown]
    head = Markup("").join(
        Markup('<th scope="col"{}{}>{}</th>').format(
            Markup(' class="number"') if is_number else "", _room(name), linked(name, links)
        )
        for name, is_number in zip((table.columns[place] for place in filled), numeric, strict=True)
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>\n").format(
            Markup("").join(
                _number(cells[row]) if cells is not None else _text(columns[place][row], links)
                for place, cells in enumerate(shown)
            )
        )
        for row in range(len(table.rows))
    )
    caption = Markup('<p class="caption">{}</p>').format(table.caption) if table.caption else ""
    return Markup(
        '<section class="block"><h3>{}</h3>{}\n<div class="table" tabindex="0"><table>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}</tbody></table></div></section>\n"
    ).format(table.title, caption, head, body)


def _room(name: str) -> Markup:
    """What gives the head of a column the room for its name in three lines."""
    return Markup(' style="min-width: {}ch"').format(len(name) // 3 + 5) if len(name) > 12 else Markup("")


def _aligned(cells: Sequence[str]) -> list[str] | None:
    """The cells of a column of numbers, filled up so that their points are below each other; None for a column of text."""
    found = [None if isinstance(cell, Markup) else _NUMBER.fullmatch(cell) for cell in cells]
    others = {cell for cell, match in zip(cells, found, strict=True) if cell and not match}
    if not any(found) or any(isinstance(cell, Markup) or cell not in _WORDS for cell in others):
        return None
    most = max(len(match[2] or "") for match in found if match)
    longest = max((match[3] or "" for match in found if match), key=len)
    behind = "".join(_POINT if sign in ". " else _DIGIT for sign in longest)
    return [
        f"{match[1]}{match[2] or ''}{_fill(most - len(match[2] or ''), bool(match[2]))}"
        f"{match[3] or ''}{behind[len(match[3] or '') :]}"
        if match
        else cell
        for cell, match in zip(cells, found, strict=True)
    ]


def _fill(lacking: int, has_point: bool) -> str:
    return _DIGIT * lacking if has_point or not lacking else _POINT + _DIGIT * (lacking - 1)


def _number(cell: str) -> Markup:
    return Markup('<td class="number">{}</td>').format(cell)


def _text(cell: str, links: Mapping[str, str]) -> Markup:
    if isinstance(cell, Markup):
        return Markup("<td>{}</td>").format(cell)
    if cell == MISSING:
        return Markup('<td class="missing">{}</td>').format(cell)
    if len(cell) > _LONG and cell not in links:
        return Markup('<td class="long"><div tabindex="0">{}</div></td>').format(cell)
    return Markup("<td{}>{}</td>").format(Markup(' class="wide"') if len(cell) > _WIDE else "", linked(cell, links))


def linked(text: str, links: Mapping[str, str]) -> Markup:
    """The text, as a link to a run or a button for a model if it is the name of one."""
    target = links.get(text)
    if target is None:
        return escape(text)
    if target.startswith("#"):
        return Markup('<a href="{}">{}</a>').format(target, text)
    return Markup('<button class="model" data-model="{}">{}</button>').format(target, text)
