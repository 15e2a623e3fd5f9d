"""The comparison of two runs as a page: one file, without a network, that marks what is wrong in each line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from one_layer.commands.compare_two import Lines, summary
from one_layer.report.page import cells
from one_layer.report.page.document import rendered
from one_layer.report.tables import Table


def page(names: tuple[str, str], tables: Sequence[Table], sentences: Sequence[str], tests: Sequence[Lines]) -> str:
    """The page of two runs, by their names: tables, sentences for people, and all lines of the test sets that could be compared."""
    return rendered(
        "two.html",
        first=names[0],
        second=names[1],
        tables=[cells.html(table, {}) for table in tables if table.rows],
        sentences=sentences,
        tests=[(found, summary(found), _rows(found)) for found in tests],
    )


def _rows(found: Lines) -> list[dict[str, object]]:
    gains = [(other - one, place) for place, (one, other) in enumerate(found.paired.lines)]
    return [
        {
            "number": place + 1,
            "gain": gain,
            "texts": [
                found.shown[place],
                found.references[place],
                *(marked(lines[place], found.references[place]) for lines in found.systems),
            ],
        }
        for gain, place in sorted(gains, key=lambda each: (-each[0], each[1]))
    ]


def marked(text: str, reference: str) -> Markup:
    """The text as HTML, in which the words are marked that the reference does not have, or has elsewhere."""
    words, wanted = text.split(), reference.split()
    parts = []
    for kind, begin, end, _, _ in SequenceMatcher(None, words, wanted, autojunk=False).get_opcodes():
        if begin < end:
            said = escape(" ".join(words[begin:end]))
            parts.append(said if kind == "equal" else Markup("<mark>{}</mark>").format(said))
    return Markup(" ").join(parts)
