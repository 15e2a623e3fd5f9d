"""Continuing a run: from its newest checkpoint that can be read, with the folder and the text that it began with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.runs.checkpoints import Checkpoints
from one_layer.runs.folder import RunFolder
from one_layer.system.errors import UserError
from one_layer.training.progress import Progress

log = logging.getLogger(__name__)


def check(began: Mapping[str, Any], folder: RunFolder, corpus: Corpus, data: DataConfig) -> None:
    """Checks that the folder and the text are those that the run began with. Raises: UserError if not."""
    folder.check_identity(dict(began), corpus)
    for part, now in corpus.fingerprints().items():
        if began["text"].get(part) != now:
            raise UserError(
                f"the {data.describe(part)} is not the text that this run began with; restore the run's own text, or train in a new "
                "--workdir"
            )


def newest(
    checkpoints: Checkpoints, params: Any, moments: Any, check_progress: Callable[[Progress], None]
) -> tuple[Progress, Any, Any] | None:
    """What the newest checkpoint holds that can be read: progress, parameters and moments, placed as `params` and `moments` are.

    None if there is no checkpoint. Newer damaged ones are set aside. `check_progress` is called before arrays are read: with other
    vocabularies they have other shapes.

    Raises: UserError if there are checkpoints but none can be read, and what `check_progress` raises.
    """
    damaged: dict[int, UserError] = {}
    for step in reversed(checkpoints.steps()):
        try:
            progress = Progress(**checkpoints.progress(step))
        except UserError as error:
            damaged[step] = error
            continue
        check_progress(progress)
        try:
            restored = checkpoints.restore(step, params=params, optimizer=moments)
        except UserError as error:
            damaged[step] = error
            continue
        for broken, why in damaged.items():
            log.warning("%s; it is kept as %s", why, checkpoints.set_aside(broken))
        checkpoints.remove_superfluous()  # only now: a damaged one is replaced by an earlier one
        log.info("continuing from update %d", step)
        return progress, restored["params"], restored["optimizer"]
    if damaged:
        raise next(iter(damaged.values()))
    return None
