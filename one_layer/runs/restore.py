"""A trained model from its run folder: config, vocabularies and the weights of a checkpoint."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from one_layer.data.text.assets import TextAssets, load_text_assets
from one_layer.errors import UserError
from one_layer.models import ModelConfig, initialize
from one_layer.runs.frozen import check_frozen, with_frozen
from one_layer.runs.settings import RunConfig, read_config, resolve

if TYPE_CHECKING:
    from one_layer.runs.checkpoints import Checkpoints

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RestoredRun:
    """What a checkpoint and its folder say, or a ticket alone; `step` is the last one where several are averaged.

    `variables` are a model's, or what `materialize` or a ticket makes of them. `source` is what a user asked for: `best`, a file.
    """

    run: RunConfig
    model: ModelConfig
    assets: TextAssets
    variables: dict[str, Any]
    step: int
    source: str


def restore_run(workdir: Path, checkpoint: str) -> RestoredRun:
    """Restores `best`, `last`, the step given, or an average: of the last N (`average:N`), of the N best (`average-best:N`).

    Averaging is over what is trained, scores and not masks: masks are made of the averaged scores (paper A, section 4). The best
    have the highest validation scores; of equal ones the later is the better.

    Raises: UserError for a folder without a run, a checkpoint that is not there or damaged, or one of another vocabulary.
    """
    from one_layer.runs.checkpoints import Checkpoints  # Orbax takes memory that a ticket can do without

    run = resolve(read_config(workdir))
    assets = load_text_assets(workdir)
    model = run.model_config(*map(len, assets.vocabularies))
    variables = with_frozen(workdir, initialize(model, run.seed))
    checkpoints = Checkpoints(workdir, read_only=True)
    try:
        steps = _steps(checkpoints, checkpoint)
        progress = checkpoints.progress(steps[-1])
        check_vocabularies(progress, assets, workdir)
        check_frozen(progress, workdir)
        params = _average(checkpoints, steps, variables["params"])
    finally:
        checkpoints.close()
    return RestoredRun(run, model, assets, {**variables, "params": params}, steps[-1], checkpoint)


def check_vocabularies(progress: dict[str, Any], assets: TextAssets, workdir: Path) -> None:
    """Makes sure that a checkpoint belongs to these vocabularies. Raises: UserError where it does not."""
    for side, vocabulary, saved in zip(
        ("source", "target"), assets.vocabularies, progress["vocabularies"], strict=True
    ):
        if vocabulary.fingerprint != saved:
            raise UserError(
                f"{workdir / f'vocabulary.{side}.txt'} ({len(vocabulary):,} types) is not the {side} vocabulary that the checkpoint "
                "was trained with: put the run's own file back, or train into a fresh --workdir"
            )


def _steps(checkpoints: Checkpoints, name: str) -> list[int]:
    """The steps, rising, of the checkpoints that `name` means."""
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
    choice, key = (steps, "keep_last") if kind == "average" else (checkpoints.ranked(), "keep_best")
    if not 1 <= int(number) <= len(choice):
        raise UserError(
            f"--checkpoint={name!r}, but {checkpoints.folder} holds {len(choice)} checkpoints; give N from 1 to {len(choice)}, "
            f"or train with train.{key} of at least N"
        )
    return sorted(choice[-int(number) :])


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
