"""A trained model from its run folder: config, vocabularies and the weights of a checkpoint."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from one_layer.errors import UserError
from one_layer.models import initialize
from one_layer.runs.folder import RunFolder
from one_layer.tasks.model import TrainedModel

if TYPE_CHECKING:
    from one_layer.runs.checkpoints import Checkpoints

log = logging.getLogger(__name__)


def restore_run(workdir: str | Path | RunFolder, checkpoint: str = "best") -> TrainedModel:
    """Restores `best`, `last`, the step given, or an average: of the last N (`average:N`), of the N best (`average-best:N`).

    Averaging is over what is trained, scores and not masks: masks are made of the averaged scores (paper A, section 4). The best
    have the highest validation scores; of equal ones the later is the better.

    Raises: UserError for a folder without a run, a checkpoint that is not there or damaged, or one of another vocabulary.
    """
    folder = workdir if isinstance(workdir, RunFolder) else RunFolder(workdir)
    run, assets = folder.read_config(), folder.assets()
    config = run.model_config(*map(len, assets.vocabularies))
    variables = folder.with_frozen(initialize(config, run.seed))
    with closing(folder.checkpoints()) as checkpoints:
        steps = _steps(checkpoints, checkpoint, run.train.keep_last)
        folder.check_identity(checkpoints.progress(steps[-1]), assets)
        params = _average(checkpoints, steps, variables["params"])
    return run.task.model(
        task=run.task,
        config=config,
        seed=run.seed,
        step=steps[-1],
        data=run.data,
        settings=run.evaluation,
        assets=assets,
        variables={**variables, "params": params},
        source=checkpoint,
        trained_with=run.raw,
    )


def _steps(checkpoints: Checkpoints, name: str, keep_last: int) -> list[int]:
    """The updates, rising, of the checkpoints that `name` means."""
    steps = checkpoints.steps()
    if not steps:
        raise UserError(f"there is no checkpoint in {checkpoints.folder}; train first, or mend --workdir")
    if name == "last":
        return steps[-1:]
    if name == "best":
        best = checkpoints.best()
        return steps[-1:] if best is None else [best]
    kind, _, number = name.rpartition(":")
    if not number.isdecimal() or kind not in ("", "average", "average-best"):
        raise UserError(f"--checkpoint={name!r} is unknown; give best, last, average:N, average-best:N or a step")
    if not kind:
        return [int(number)]
    choice, key = (
        (checkpoints.ranked(), "keep_best")
        if kind == "average-best"
        else (
            _last_evaluations(checkpoints, keep_last),
            "keep_last",
        )
    )
    if not 1 <= int(number) <= len(choice):
        which = "of the last evaluations in a row" if key == "keep_last" else "with a score"
        raise UserError(
            f"--checkpoint={name!r}, but {checkpoints.folder} holds {len(choice)} checkpoints {which}; give N from 1 to "
            f"{len(choice)}, or train with train.{key} of at least N"
        )
    return sorted(choice[-int(number) :])


def _last_evaluations(checkpoints: Checkpoints, keep_last: int) -> list[int]:
    """The updates of the last evaluations whose checkpoints are all there, rising.

    Older checkpoints stay as well, for their score or as every N-th: between them and these, evaluations are missing.
    """
    scored = sorted(checkpoints.ranked())
    if not scored:
        return []
    evaluated = checkpoints.progress(scored[-1]).get("evaluated")
    if evaluated is None:  # a run of an earlier version did not write this down; these are certain to be in a row
        return scored[-keep_last:]
    missing = [place for place, step in enumerate(evaluated) if step not in scored]
    return evaluated[missing[-1] + 1 if missing else 0 :]


def _average(checkpoints: Checkpoints, steps: list[int], like: Any) -> Any:
    """The mean of what is trained over the checkpoints of `steps`, shaped as `like`; only one of them at a time is in memory.

    Summed in float64 by NumPy, so that the scores, and with them the masks, are the same bits on every device.
    """
    if len(steps) == 1:
        return checkpoints.restore(steps[0], params=like)["params"]
    log.info("averaging the checkpoints of updates %s", ", ".join(map(str, steps)))
    total = jax.tree.map(lambda leaf: np.zeros(leaf.shape), like)
    for step in steps:
        total = jax.tree.map(np.add, total, checkpoints.restore(step, params=like)["params"])
    return jax.tree.map(lambda leaf, each: jnp.asarray(leaf / len(steps), each.dtype), total, like)
