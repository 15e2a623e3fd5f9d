"""The page of tickets: one file of HTML with its style, its scripts and the tickets' bytes, which asks the network for nothing."""

import gzip
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.moses_tables import moses_tables
from one_layer.models import ModelConfig
from one_layer.page.bundle import FOLDER, bundle
from one_layer.page.embedding import ENCODING, element
from one_layer.system.errors import UserError
from one_layer.tickets import Ticket, load

# Bytes of a ticket: with its text form, its matrices and their products, a browser's tab holds about 20 times as many.
LARGEST = 2**27
RECURRENT = ("gru", "conv")  # blocks of reservoirs that one_layer/page/engine does not have


def of_tickets(*paths: Path, note: str = "") -> bytes:
    """The file of the page of one ticket, or of several, between which one switches. `note`: a sentence at its end.

    Raises: UserError as `checked` does.
    """
    return html(*((path.read_bytes(), ticket.assets) for path, ticket in checked(paths)), note=note)


def checked(paths: Sequence[Path]) -> list[tuple[Path, Ticket]]:
    """The tickets of files, of which a page can be made.

    Raises: UserError for a file that is no whole ticket, for tickets that are together too large for a page, for two that do the same, and
    for a model that the page cannot compute.
    """
    size = sum(path.stat().st_size for path in paths if path.is_file())
    if size > LARGEST:
        what = f"the ticket {paths[0]} has" if len(paths) == 1 else f"the {len(paths)} tickets have"
        raise UserError(
            f"{what} {size:,} bytes, but a page holds at most {LARGEST:,}, because a browser keeps all of it in memory; use "
            "a ticket with the program, or export it with --precision=int4 or of a smaller model"
        )
    known: dict[tuple[str, ...], Path] = {}
    tickets = []
    for path in paths:
        ticket = load(path)
        _check_computable(path, ticket.config)
        does = (ticket.task.name, *ticket.assets.languages)
        if does in known:
            raise UserError(
                f"the tickets {known[does]} and {path} do the same ({' '.join(does)}); a page has one for each task and direction: leave "
                "one of them out"
            )
        known[does] = path
        tickets.append((path, ticket))
    return tickets


def _check_computable(path: Path, config: ModelConfig) -> None:
    for stack in config.network_family.stacks:
        for group in config.stack(stack).groups:
            if group.layer.block in RECURRENT:
                raise UserError(
                    f"the ticket {path} has reservoirs with model.reservoir={group.layer.block}, which a page cannot compute; use the "
                    "ticket with the program"
                )


def html(*tickets: tuple[bytes, TextAssets], note: str = "") -> bytes:
    """The page of tickets, each with its bytes and its text assets. It has the same content wherever it is made."""
    scripts = {
        "view": bundle("view/main.js"),
        "worker": bundle("engine/worker.js") + 'modules["engine/worker.js"].serve(self);\n',
        "tables": moses_tables([steps for _, assets in tickets for steps in assets.steps]),
    }
    packed = gzip.compress(json.dumps(scripts, ensure_ascii=False).encode(), 9, mtime=0)
    begin = b"<script>\n%b</script>" % _read("begin.js").encode("ascii")
    held = [element(f"ticket{number or ''}", content) for number, (content, _) in enumerate(tickets)]
    parts = {
        b'<p id="note"></p>': _ascii(f"<p>{escape(note)}</p>") if note else b"",
        b"<style></style>": b"<style>\n%b</style>" % _read("style.css").encode("ascii"),
        b"<script></script>": b"\n".join((element("scripts", packed), *held, begin)),
    }
    page = _ascii(_read("page.html"))
    assert b'<meta charset="%b">' % ENCODING.encode() in page[:1024], "where browsers look for it"
    for place, content in parts.items():
        assert page.count(place) == 1, place
        page = page.replace(place, content)
    return page.rstrip(b"\n")


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "xmlcharrefreplace")


def _read(name: str) -> str:
    return (FOLDER / "view" / name).read_text(encoding="utf-8")
