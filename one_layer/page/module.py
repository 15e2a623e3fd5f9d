"""Tickets as one ES module for other programs: `translate` and `labels`, in Node and in a page."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from one_layer.data.text.moses_tables import moses_tables
from one_layer.page.bundle import bundle
from one_layer.page.document import checked

SUFFIXES = (".js", ".mjs")  # of an output that is a module

_END = """\
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const { translate, labels } = modules["engine/embedded.js"].embedded([%s], %s);
export { translate, labels };
"""


def of_tickets(paths: Sequence[Path]) -> bytes:
    """The file of the module of some tickets.

    Raises: UserError for a file that is no whole ticket or too large, and for a model that the engine cannot compute.
    """
    steps = [each for _, ticket in checked(paths) for each in ticket.assets.steps]
    tickets = [f'() => bytesOf("{base64.b64encode(path.read_bytes()).decode()}")' for path in paths]
    tables = json.dumps(moses_tables(steps), ensure_ascii=False)
    return (bundle("engine/embedded.js") + _END % (",\n".join(tickets), tables)).encode()
