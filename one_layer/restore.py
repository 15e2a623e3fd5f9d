"""A trained model from its run folder: config, vocabularies and the weights of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from one_layer.checkpoints import Checkpoints
from one_layer.data.assets import TextAssets, load_text_assets
from one_layer.errors import UserError
from one_layer.models import ModelConfig, initialize
from one_layer.settings import RunConfig, read_config, resolve


@dataclass(frozen=True)
class RestoredRun:
    """What a checkpoint and its folder say; `step` is the last one where several are averaged."""

    run: RunConfig
    model: ModelConfig
    assets: TextAssets
    variables: dict[str, Any]
    step: int


def restore_run(workdir: Path, checkpoint: str) -> RestoredRun:
    """Restores `best`, `last`, `average:N` (the scores, or dense weights, of the last N averaged) or the step given.

    Averaging is over what is trained, scores and not masks: masks are made of the averaged scores (paper A, section 4).

    Raises: UserError for a folder without a run, a checkpoint that is not there or damaged, or one of another vocabulary.
    """
    run = resolve(read_config(workdir))
    assets = load_text_assets(workdir)
    model = run.model_config(*map(len, assets.vocabularies))
    variables = initialize(model, run.seed)
    checkpoints = Checkpoints(workdir, read_only=True)
    try:
        steps = _steps(checkpoints, checkpoint)
        check_vocabularies(checkpoints.progress(steps[-1]), assets, workdir)
        restored = [checkpoints.restore(step, params=variables["params"])["params"] for step in steps]
    finally:
        checkpoints.close()
    params = restored[0] if len(restored) == 1 else jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *restored)
    return RestoredRun(run, model, assets, {**variables, "params": params}, steps[-1])


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
    steps = checkpoints.steps()
    if not steps:
        raise UserError(f"there is no checkpoint in {checkpoints.folder}; train first, or mend --workdir")
    if name == "last":
        return steps[-1:]
    if name == "best":
        best = checkpoints.best()
        return steps[-1:] if best is None else [best]
    kind, _, number = name.rpartition(":")
    if not number.isdigit() or kind not in ("", "average"):
        raise UserError(f"--checkpoint={name!r} is unknown; give best, last, average:N or a step")
    if kind == "average":
        if not 1 <= int(number) <= len(steps):
            raise UserError(
                f"--checkpoint={name!r}, but {checkpoints.folder} holds {len(steps)} checkpoints; train with train.keep_last "
                f"of at least {number}, or average fewer"
            )
        return steps[-int(number) :]
    return [int(number)]
