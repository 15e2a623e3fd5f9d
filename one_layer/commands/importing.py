"""What the commands that import a model have in common: the keys on their command lines, and the run folder that they write."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from one_layer.cli.config_files import defaults
from one_layer.data.text.assets import TextAssets
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.errors import UserError
from one_layer.training.optimizer import optimizer
from one_layer.training.progress import Progress


def new_folder(workdir: Any) -> RunFolder:
    """The folder of a run that is to be written. Raises: UserError if there is a run already."""
    folder = RunFolder(workdir)
    if folder.holds_run or folder.checkpoints_folder.exists():
        raise UserError(f"--workdir={workdir} already holds a run; give a new folder")
    return folder


def run_of(stated: dict[str, Any], overrides: dict[str, Any], assumed: dict[str, Any]) -> RunConfig:
    """The config of an imported run: that of configs/common.py with the values `assumed`, `stated` by the file, and the user's.

    All are by dotted names. Raises: UserError for a user's value that differs from a stated one.
    """
    for name in stated.keys() & overrides.keys():
        if stated[name] != overrides[name]:
            raise UserError(
                f"--config.{name}={overrides[name]!r}, but the checkpoint's model has {stated[name]!r}; leave this option out"
            )
    config = defaults().to_dict()
    for name, value in {"train.epochs": 1, **assumed, **stated, **overrides}.items():
        section, _, key = name.rpartition(".")
        (config[section] if section else config)[key] = value
    return resolve(config)


def write_run(run: RunConfig, assets: TextAssets, variables: dict[str, Any], folder: RunFolder) -> None:
    """Writes the folder of a run without updates. config.json comes last, because only this file makes the folder a run."""
    params = variables["params"]
    folder.begin(assets, {name: tree for name, tree in variables.items() if name != "params"}, text={})
    progress = Progress(**folder.identity(assets), evaluated=[0])
    with closing(folder.checkpoints(run.train)) as checkpoints:
        checkpoints.save(0, params, optimizer(run.optim, 1).init(params), vars(progress), 0.0)
    folder.write_config(run)
