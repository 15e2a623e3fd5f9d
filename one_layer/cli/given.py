"""What the flags name: a run's folder, a model, and keys of the config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from absl import flags
from ml_collections import config_flags

from one_layer.cli import options
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.runs.folder import RunFolder
    from one_layer.tasks.model import TrainedModel


def needed(name: str, what: str) -> str:
    """The value of a flag. Raises: UserError if it is not given, with `what` to give."""
    value: str | None = flags.FLAGS[name].value
    if not value:
        raise UserError(f"--{name} is missing; {what}")
    return value


def ticket() -> str:
    """The one ticket that --ticket names; empty if it is not given."""
    return next(iter(options.TICKET.value), "")


def run_folder(or_ticket: bool = True) -> RunFolder:
    """The folder that --workdir names. Raises: UserError if it is not given. `or_ticket`: a ticket would do too."""
    from one_layer.runs.folder import RunFolder

    return RunFolder(
        needed("workdir", f"give the folder of the run{', or a ticket as --ticket=FILE' if or_ticket else ''}")
    )


def overrides() -> dict[str, Any]:
    """The keys of the config that the command line gives, by their dotted names."""
    return {} if options.CONFIG.value is None else dict(config_flags.get_override_values(flags.FLAGS["config"]))


def model() -> TrainedModel:
    """The model of the ticket or checkpoint. If a config is given, its section `evaluation` replaces the model's."""
    given = overrides()
    mesh = {name.removeprefix("mesh."): value for name, value in given.items() if name.startswith("mesh.")}
    if ticket():
        from one_layer.tickets import restore_ticket

        for name in mesh:
            raise UserError(
                f"--config.mesh.{name} has no effect beside --ticket, whose model is on one device; leave it out"
            )
        found = restore_ticket(ticket(), packed=options.TICKET_MODE.value == "packed")
    else:
        from one_layer.runs.restore import restore_run

        found = restore_run(run_folder(), options.CHECKPOINT.value, mesh)
    if options.CONFIG.value is not None:
        from one_layer.runs.rescoring import rescored

        found = rescored(found, options.CONFIG.value.to_dict(), given)
    if options.ENGINE.value == "jax":
        return found
    from one_layer.importers.ctranslate2 import searching

    return searching(found, options.ENGINE.value)
