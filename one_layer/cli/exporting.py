"""`--mode=export`: the ticket of a run, or a model as a folder for another engine."""

from __future__ import annotations

from pathlib import Path

from one_layer.cli import given, options
from one_layer.importers import engines
from one_layer.models.pruning import kept_layers
from one_layer.runs.rescoring import without_layers
from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel
from one_layer.tickets import export as export_ticket
from one_layer.tickets import restore_ticket


def export() -> None:
    """Writes what the flags ask for. Raises: UserError, before the model is read if possible."""
    if options.FORMAT.value == "ticket":
        _ticket()
    else:
        _for_engine(options.FORMAT.value)


def _ticket() -> None:
    """Writes the ticket of a checkpoint into the run's folder."""
    for name, flag in (("ticket", options.TICKET), ("output", options.OUTPUT)):
        if flag.value:
            raise UserError(
                f"--{name} is for --format=ctranslate2 and huggingface; without --format, the ticket of a run is written into its "
                f"folder: leave --{name} out, or give --format"
            )
    folder = given.run_folder(or_ticket=False)
    model = _kept_layers(restore_run(folder, options.CHECKPOINT.value))
    path = folder.ticket_in(options.PRECISION.value, kept_layers(model.config))
    export_ticket(model, path, options.PRECISION.value)


def _for_engine(format: str) -> None:
    """Writes a model into a new folder for another engine."""
    folder = None if given.ticket() else given.run_folder()
    output = Path(given.needed("output", f"give a new folder for --format={format}"))
    precision = options.PRECISION.value or "float32"
    engines.check(format, output, precision)
    model = restore_ticket(given.ticket()) if folder is None else restore_run(folder, options.CHECKPOINT.value)
    engines.export(_kept_layers(model), format, output, precision)


def _kept_layers(model: TrainedModel) -> TrainedModel:
    """`model` without the layers that `--config.model.encoder_layers` and `.decoder_layers` leave out. Other keys are for training."""
    overrides = given.overrides()
    if others := sorted(overrides.keys() - {"model.encoder_layers", "model.decoder_layers"}):
        raise UserError(
            f"--mode=export has no use for --config.{others[0]}; it takes all settings from the run, but for layers that "
            "--config.model.encoder_layers and --config.model.decoder_layers leave out"
        )
    return without_layers(model, overrides)
