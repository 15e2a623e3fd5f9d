"""Supermasks over one random Transformer layer: `one_layer.load` opens a trained model, from a run's folder or a ticket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.17.0"

if TYPE_CHECKING:
    from one_layer.tasks.model import TrainedModel


def load(path: str | Path, checkpoint: str | int | None = None, packed: bool = False) -> TrainedModel:
    """The trained model in a ticket, or in the folder of a run.

    A translation model has `translate(lines)`, a classifier `classify(texts)`, a causal language model `generate(prompts)`, a masked
    one `fill(lines)`. Of a folder, `checkpoint` is `best` (by default), `last`, `average:N` or an update. Of a ticket,
    `packed` keeps the masks as bits: less memory, the same numbers.

    Raises: UserError for a path without a model, one that is damaged, and an argument that has no effect on such a path.
    """
    from one_layer.system.errors import UserError, not_in_utf8
    from one_layer.system.files import at_home

    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise not_in_utf8(path) from None
    path = at_home(os.fspath(path))
    if Path(path).is_dir():
        from one_layer.runs.restore import restore_run

        if packed:
            raise UserError(
                f"packed=True is for tickets, but {path} is a folder; load its ticket.safetensors, or leave packed out"
            )
        return restore_run(path, "best" if checkpoint is None else str(checkpoint))
    from one_layer.tickets import restore_ticket

    if checkpoint is not None:
        raise UserError(
            f"checkpoint={checkpoint!r:.60} is for the folders of runs, but {path} is none; leave checkpoint out"
        )

    return restore_ticket(path, packed)
