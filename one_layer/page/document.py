"""The page of a ticket: one file of HTML with its style, its scripts and the ticket's bytes, which asks the network for nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.moses_tables import moses_tables
from one_layer.page.bundle import FOLDER, bundle
from one_layer.page.embedding import ENCODING, element
from one_layer.system.errors import UserError
from one_layer.tickets import Ticket, load

LARGEST = (
    2**27
)  # bytes of a ticket: with its text form, its matrices and their products, a browser's tab holds about 20 times as many
RECURRENT = ("gru", "conv")  # blocks of reservoirs that one_layer/page/engine does not have


def of_ticket(path: Path) -> bytes:
    """The file of the page of a ticket. Raises: UserError as `checked` does."""
    ticket = checked(path)
    return html(path.read_bytes(), ticket.assets)


def checked(path: Path) -> Ticket:
    """The ticket of a file, of which a page can be made.

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
    return ticket


def html(ticket: bytes, assets: TextAssets) -> bytes:
    """The page of a ticket's bytes, whose text assets are given. It has the same content wherever it is made."""
    scripts = {
        "view": bundle("view/main.js"),
        "worker": bundle("engine/worker.js") + 'modules["engine/worker.js"].serve(self);\n',
        "tables": moses_tables(assets.steps),
    }
    packed = gzip.compress(json.dumps(scripts, ensure_ascii=False).encode(), 9, mtime=0)
    begin = b"<script>\n%b</script>" % _read("begin.js").encode("ascii")
    parts = {
        b"<style></style>": b"<style>\n%b</style>" % _read("style.css").encode("ascii"),
        b"<script></script>": b"\n".join((element("scripts", packed), element("ticket", ticket), begin)),
    }
    page = _read("page.html").encode("ascii", "xmlcharrefreplace")
    assert b'<meta charset="%b">' % ENCODING.encode() in page[:1024], "where browsers look for it"
    for place, content in parts.items():
        assert page.count(place) == 1, place
        page = page.replace(place, content)
    return page.rstrip(b"\n")


def _read(name: str) -> str:
    return (FOLDER / "view" / name).read_text(encoding="utf-8")
