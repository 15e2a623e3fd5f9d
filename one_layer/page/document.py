"""The page of a ticket: one file of HTML with its style, its scripts and the ticket's bytes, which asks the network for nothing."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.moses_tables import moses_tables
from one_layer.page.bundle import FOLDER, bundle
from one_layer.system.errors import UserError
from one_layer.tickets import load

LARGEST = (
    2**27
)  # bytes of a ticket: with its text form, its matrices and their products, a browser's tab holds about 20 times as many
RECURRENT = ("gru", "conv")  # blocks of reservoirs that one_layer/page/engine does not have
_WIDTH = 1000  # characters in a line of base64


def of_ticket(path: Path) -> str:
    """The HTML of the page of a ticket.

    Raises: UserError for a file that is no whole ticket or too large for a page, and for a model that the page cannot compute.
    """
    if path.is_file() and (size := path.stat().st_size) > LARGEST:
        raise UserError(
            f"the ticket {path} has {size:,} bytes, but a page holds at most {LARGEST:,}, because a browser keeps all of it in memory; use "
            "the ticket with the program, or export it with --precision=int4 or of a smaller model"
        )
    ticket = load(path)
    for stack in ticket.config.network_family.stacks:
        for group in ticket.config.stack(stack).groups:
            if group.layer.block in RECURRENT:
                raise UserError(
                    f"the ticket {path} has reservoirs with model.reservoir={group.layer.block}, which a page cannot compute; use the "
                    "ticket with the program"
                )
    return html(path.read_bytes(), ticket.assets)


def html(ticket: bytes, assets: TextAssets) -> str:
    """The page of a ticket's bytes, whose text assets are given. It has the same content wherever it is made."""
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
    return page.rstrip("\n")


def _read(name: str) -> str:
    return (FOLDER / "view" / name).read_text(encoding="utf-8")


def _data(name: str, content: bytes) -> str:
    """Bytes in an element that a browser does not run."""
    lines = re.sub(f"(.{{{_WIDTH}}})", r"\1\n", base64.b64encode(content).decode())
    return f'<script type="text/plain" id="{name}">\n{lines}\n</script>'
