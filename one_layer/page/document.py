"""The page of a ticket: one file of HTML with its style, its scripts and the ticket's bytes, which asks the network for nothing."""

from __future__ import annotations

import base64
import gzip
import json
import re

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.moses_tables import moses_tables
from one_layer.page.bundle import FOLDER, bundle
from one_layer.system.errors import UserError

LARGEST = (
    2**27
)  # bytes of a ticket: with its text form, its matrices and their products, a browser's tab holds about 20 times as many
_WIDTH = 1000  # characters in a line of base64


def html(ticket: bytes, assets: TextAssets, name: str = "the ticket") -> str:
    """The HTML of the page of a ticket, whose text assets are given. It has the same content wherever it is made.

    Raises: UserError for a ticket of more than `LARGEST` bytes.
    """
    if len(ticket) > LARGEST:
        raise UserError(
            f"{name} has {len(ticket):,} bytes, but a page holds at most {LARGEST:,}, because a browser keeps all of it in memory; "
            "give a smaller model, or use --mode=translate and the like"
        )
    scripts = {
        "view": bundle("view/main.js"),
        "worker": bundle("engine/worker.js") + 'modules["engine/worker.js"].serve(self);\n',
        "tables": moses_tables(assets.steps),
    }
    packed = gzip.compress(json.dumps(scripts, ensure_ascii=False).encode(), 9, mtime=0)
    parts = {
        "<style></style>": f"<style>\n{_read('style.css')}</style>",
        "<script></script>": f"{_data('scripts', packed)}\n{_data('ticket', ticket)}\n<script>\n{_read('begin.js')}</script>",
    }
    page = _read("page.html")
    for place, content in parts.items():
        assert page.count(place) == 1, place
        page = page.replace(place, content)
    return page


def _read(name: str) -> str:
    return (FOLDER / "view" / name).read_text(encoding="utf-8")


def _data(name: str, content: bytes) -> str:
    """Bytes in an element that a browser does not run."""
    lines = re.sub(f"(.{{{_WIDTH}}})", r"\1\n", base64.b64encode(content).decode())
    return f'<script type="text/plain" id="{name}">\n{lines}\n</script>'
