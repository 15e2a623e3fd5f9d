"""The comparison of two runs as a page: one file, without a network, that marks what is wrong in each line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import jinja2
from markupsafe import Markup, escape

from one_layer.commands.compare_two import Lines, summary
from one_layer.report.tables import Table

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{{ title }}</title>
<style>
:root { --line: #d8dce0; --soft: #60666d; --mark: #ffd8a8; --better: #0072b2; --worse: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --line: #363c42; --soft: #a0a7ae; --mark: #6b4a16; --better: #56b4e9; --worse: #e69f00; } }
body { margin: 0 auto; max-width: 1340px; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
p { max-width: 75ch; } .soft { color: var(--soft); } mark { background: var(--mark); color: inherit; border-radius: 2px; }
div { overflow-x: auto; } table { border-collapse: collapse; font-size: .87rem; }
th, td { padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th, td:not(.text) { overflow-wrap: normal; font-variant-numeric: tabular-nums; } td.text { min-width: 12rem; }
.better { color: var(--better); } .worse { color: var(--worse); }
</style>
</head>
<body>
<h1>Two runs</h1>
<p>first: <code>{{ first }}</code><br>second: <code>{{ second }}</code></p>
{% for table in tables if table.rows %}
<h2>{{ table.title }}</h2>
<div tabindex="0"><table><tr>{% for name in table.columns %}<th scope="col">{{ name }}</th>{% endfor %}</tr>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
<p class="soft">{{ table.caption }}</p>
{% endfor %}
{% for sentence in sentences %}<p>{{ sentence }}</p>{% endfor %}
{% for found, said, rows in tests %}
<h2>{{ found.test }}, line by line</h2>
<p>{{ said }}</p>
<p class="soft">The lines that the second run has better come first. Marked words are not in the reference, or stand elsewhere there.</p>
<div tabindex="0"><table>
<tr><th scope="col">line</th><th scope="col">gain</th><th scope="col">source</th><th scope="col">reference</th><th scope="col">first</th>
<th scope="col">second</th></tr>
{% for row in rows %}
<tr><td>{{ row.number }}</td><td class="{{ 'better' if row.gain > 0 else 'worse' if row.gain < 0 }}">{{ '%+.3g' % row.gain }}</td>
{% for text in row.texts %}<td class="text">{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</table></div>
{% endfor %}
</body>
</html>
"""


def page(names: tuple[str, str], tables: Sequence[Table], sentences: Sequence[str], tests: Sequence[Lines]) -> str:
    """The page of two runs, by their names: tables, sentences for people, and all lines of the test sets that could be compared."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_PAGE).render(
        title=f"{names[0]} and {names[1]}",
        first=names[0],
        second=names[1],
        tables=tables,
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
