"""Loads a trained model from its run folder: config, vocabularies and the weights of a checkpoint."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from one_layer.data.text.assets import TextAssets
from one_layer.models import initialize
from one_layer.models.sharding import Devices, fetch
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import MeshConfig, RunConfig
from one_layer.system.errors import UserError, counted
from one_layer.tasks.model import TrainedModel

if TYPE_CHECKING:
    from one_layer.runs.checkpoints import Checkpoints

log = logging.getLogger(__name__)


def restore_run(
    workdir: str | Path | RunFolder, checkpoint: str = "best", mesh: dict[str, int] | None = None
) -> TrainedModel:
    """Restores `best`, `last`, a step, or the average of the last N checkpoints (`average:N`).

    An average is over the trained parameters: scores are averaged, and masks are made from the averaged scores (paper A, section 4). Where
    no checkpoint has a score yet, `best` is restored as `last`, and the log says so. `mesh` replaces keys of the run's section `mesh`.

    Raises: UserError for a folder without a run, a missing or damaged checkpoint, or one with another vocabulary.
    """
    folder = workdir if isinstance(workdir, RunFolder) else RunFolder(workdir)
    run, assets = folder.read_config(), folder.assets()
    if began := folder.began():
        folder.check_vocabularies(began, assets)  # before the sizes of another one are found wrong
    config = run.model_config(*map(len, assets.vocabularies))
    variables = folder.with_frozen(initialize(config, run.seed, _devices(run, mesh)))
    try:
        checkpoint, step, params = _read(folder, checkpoint, assets, variables["params"])
    except (UserError, OSError):  # a run that still trains removes older checkpoints, perhaps this one: look again
        checkpoint, step, params = _read(folder, checkpoint, assets, variables["params"])
    return run.task.model(
        config=config,
        seed=run.seed,
        step=step,
        data=run.data,
        settings=run.evaluation,
        assets=assets,
        variables={**variables, "params": params},
        source=checkpoint,
        trained_with=run.raw,
    )


def _read(folder: RunFolder, checkpoint: str, assets: TextAssets, like: Any) -> tuple[str, int, Any]:
    """The name of what was restored, its last update, and the trained parameters in the shapes of `like`."""
    with closing(folder.checkpoints()) as checkpoints:
        if checkpoint == "best" and checkpoints.steps() and checkpoints.best() is None:
            log.info("no checkpoint has a validation score yet, so this is the last one, update %d", checkpoints.last())
            checkpoint = "last"
        steps = _steps(checkpoints, checkpoint)
        folder.check_identity(checkpoints.progress(steps[-1]), assets)
        return checkpoint, steps[-1], _average(checkpoints, steps, like)


def restore_source(key: str, path: str, otherwise: str = "") -> TrainedModel:
    """The best checkpoint of the run that a `key` of another run's config names.

    Raises: UserError, which names the key, if there is none, or if it cannot be used; `otherwise` is what else may be given.
    """
    folder = RunFolder(path)
    if not folder.holds_run:
        raise UserError(
            f"{key} is {path}, where there is no run with config.json and a checkpoint; give the folder of a trained run{otherwise}"
        )
    try:
        return restore_run(folder, "best")
    except UserError as error:
        raise UserError(f"the run of {key} cannot be used: {error}") from None


def _devices(run: RunConfig, mesh: dict[str, int] | None) -> Devices:
    """The devices of the run's mesh; without a given mesh, those that are here if the run's were others."""
    try:
        devices = Devices.arranged(**vars(MeshConfig(**{**vars(run.mesh), **(mesh or {})})))
        devices.check(run.model_config(10, 10))
        return devices
    except UserError as error:
        if mesh:
            raise
        log.info("the run's mesh is not used, because %s", error)
        return Devices.arranged()


def _steps(checkpoints: Checkpoints, name: str) -> list[int]:
    """The updates of the checkpoints that `name` means, in ascending order."""
    steps = checkpoints.steps()
    if not steps:
        raise UserError(f"there is no checkpoint in {checkpoints.folder}; train first, or correct --workdir")
    if name == "last":
        return steps[-1:]
    if name == "best":
        best = checkpoints.best()
        return steps[-1:] if best is None else [best]  # none: it was removed at this moment
    kind, _, number = name.rpartition(":")
    if not number.isdecimal() or kind not in ("", "average"):
        raise UserError(f"--checkpoint={name!r} is unknown; give best, last, average:N or a step")
    if not kind:
        return [int(number)]
    choice = _last_evaluations(checkpoints)
    if not choice:
        raise UserError(
            f"--checkpoint={name!r}, but no evaluation has saved a checkpoint in {checkpoints.folder} yet; let the run go on"
        )
    if not 0 < int(number) <= len(choice):
        raise UserError(
            f"--checkpoint={name!r}, but {checkpoints.folder} holds {counted(len(choice), 'checkpoint')} of the latest consecutive "
            f"evaluations; give N from 1 to {len(choice)}, or train with train.keep_last of at least N"
        )
    return choice[-int(number) :]


def _last_evaluations(checkpoints: Checkpoints) -> list[int]:
    """The updates of the latest consecutive evaluations whose checkpoints all exist, in ascending order.

    Older checkpoints may also exist, because of their score. Between those and these, checkpoints are missing.
    """
    scored = checkpoints.scored()
    if not scored:
        return []
    evaluated = checkpoints.progress(scored[-1])["evaluated"]
    missing = [place for place, step in enumerate(evaluated) if step not in scored]
    return evaluated[missing[-1] + 1 if missing else 0 :]


def _average(checkpoints: Checkpoints, steps: list[int], like: Any) -> Any:
    """The mean of the trained parameters over the checkpoints of `steps`, in the shapes of `like`. Memory holds one checkpoint at a time.

    NumPy sums in float64, so that the scores, and therefore the masks, have the same bits on every device.
    """
    if len(steps) == 1:
        return checkpoints.restore(steps[0], params=like)["params"]
    log.info("averaging the checkpoints of updates %s", ", ".join(map(str, steps)))
    total = jax.tree.map(lambda leaf: np.zeros(leaf.shape), like)
    for step in steps:
        total = jax.tree.map(np.add, total, fetch(checkpoints.restore(step, params=like)["params"]))
    devices = Devices.holding(like)

    def mean(path: Any, total: np.ndarray, each: Any) -> Any:
        return devices.place(("params", *(key.key for key in path)), (total / len(steps)).astype(each.dtype))

    return jax.tree_util.tree_map_with_path(mean, total, like)
