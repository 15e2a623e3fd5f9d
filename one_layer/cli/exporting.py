"""`--mode=export`: the ticket of a run, or a model as a folder for another engine."""

from __future__ import annotations

from pathlib import Path

from one_layer.cli.given import Given
from one_layer.importers import engines
from one_layer.models.pruning import kept_layers
from one_layer.runs.rescoring import without_layers
from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel
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
    model = _kept_layers(restore_run(folder, given.options.checkpoint), given)
    precision = given.options.precision
    export_ticket(model, folder.ticket_in(precision, kept_layers(model.config)), precision)


def _for_engine(given: Given) -> None:
    """Writes a model into a new folder for another engine."""
    format = given.options.format
    folder = None if given.ticket else given.run_folder()
    output = Path(given.needed("output", f"give a new folder for --format={format}"))
    precision = given.options.precision or "float32"
    engines.check(format, output, precision)
    model = restore_ticket(given.ticket) if folder is None else restore_run(folder, given.options.checkpoint)
    engines.export(_kept_layers(model, given), format, output, precision)


def _kept_layers(model: TrainedModel, given: Given) -> TrainedModel:
    """`model` without the layers that `--config.model.encoder_layers` and `.decoder_layers` leave out. Other keys are for training."""
    if others := sorted(given.overrides.keys() - {"model.encoder_layers", "model.decoder_layers"}):
        raise UserError(
            f"--mode=export has no use for --config.{others[0]}; it takes all settings from the run, but for layers that "
            "--config.model.encoder_layers and --config.model.decoder_layers leave out"
        )
    return without_layers(model, given.overrides)
