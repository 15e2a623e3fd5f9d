"""`--mode=page`: a ticket as one file of HTML that computes in the browser."""

from __future__ import annotations

import logging
from pathlib import Path

from one_layer.cli import options
from one_layer.data.text.streams import check_output, write_content
from one_layer.page.document import of_ticket
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)


def page() -> None:
    """Writes the page of the ticket that --ticket names, or of that in the run's folder. Raises: UserError, before anything is written."""
    ticket = Path(options.TICKET.value or options.run_folder().ticket_file)
    if not (output := options.OUTPUT.value):
        raise UserError("--output is missing; give the file of the page, for instance --output=page.html")
    check_output(output)
    written = of_ticket(ticket)
    write_content(output, written)
    log.info("%s: %s bytes with the ticket of %s; open it in a browser", output, *_sizes(written, ticket))


def _sizes(written: bytes, ticket: Path) -> tuple[str, str]:
    return f"{len(written):,}", f"{ticket.stat().st_size:,}"
