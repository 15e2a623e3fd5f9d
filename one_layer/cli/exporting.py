"""`--mode=export`: the ticket of a run, or a model as a folder for another engine."""

from __future__ import annotations

from pathlib import Path

from one_layer.cli.given import Given
from one_layer.importers import engines
from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError
from one_layer.tickets import export as export_ticket
from one_layer.tickets import restore_ticket


def export(given: Given) -> None:
    """Writes what the options ask for. Raises: UserError, before the model is read if possible."""
    if given.options.format == "ticket":
        _ticket(given)
    else:
        _for_engine(given)


def _ticket(given: Given) -> None:
    """Writes the ticket of a checkpoint into the run's folder."""
    for name in ("ticket", "output"):
        if name in given.present:
            raise UserError(
                f"--{name} is for --format=ctranslate2 and huggingface; without --format, the ticket of a run is written into its "
                f"folder: leave --{name} out, or give --format"
            )
    folder = given.run_folder(or_ticket=False)
    precision = given.options.precision
    export_ticket(restore_run(folder, given.options.checkpoint), folder.ticket_in(precision), precision)


def _for_engine(given: Given) -> None:
    """Writes a model into a new folder for another engine."""
    format = given.options.format
    folder = None if given.ticket else given.run_folder()
    output = Path(given.needed("output", f"give a new folder for --format={format}"))
    precision = given.options.precision or "float32"
    engines.check(format, output, precision)
    model = restore_ticket(given.ticket) if folder is None else restore_run(folder, given.options.checkpoint)
    engines.export(model, format, output, precision)
