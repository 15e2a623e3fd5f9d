"""What the commands that import a model have in common: the keys on their command lines, and the run folder that they write."""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from one_layer.cli.command import parser_of
from one_layer.cli.config_files import defaults
from one_layer.cli.overrides import override
from one_layer.data.text.assets import TextAssets
from one_layer.importers.safetensors_files import INDEX
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import replaced
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.errors import UserError
from one_layer.training.optimizer import optimizer
from one_layer.training.progress import Progress

log = logging.getLogger(__name__)

FILES = ("config.json", "model.safetensors", "vocab.json", "merges.txt")  # of a folder in Hugging Face's format


# What a folder becomes: the config of the run, its text assets and variables, and lines for people.
Imported = tuple[RunConfig, TextAssets, dict[str, Any], list[str]]


def main_of(
    documentation: str | None, argv: list[str], kind: str, convert: Callable[[Path, dict[str, Any]], Imported]
) -> None:
    """Runs the command line of a command that imports the folder of a `kind`. Everything is checked before anything is written.

    `convert` takes the folder, and config values by dotted names. Raises: UserError for options that are missing.
    """
    parser = parser_of(documentation)
    parser.add_argument("--folder", type=Path, required=True, help="the folder, as Hugging Face publishes it")
    parser.add_argument("--workdir", type=Path, required=True, help="the run folder")
    arguments, rest = parser.parse_known_args(argv)
    overrides, folder = override(defaults(), rest), new_folder(arguments.workdir)
    check_files(arguments.folder, kind)
    run, assets, variables, said = convert(arguments.folder, overrides)
    write_run(run, assets, variables, folder, overrides)
    for line in said:
        log.info(line)
    log.info("%s holds the %s model of %s", arguments.workdir, run.task.name, arguments.folder)


def check_files(source: Path, kind: str) -> None:
    """Raises: UserError for a folder that lacks one of FILES. The weights may be in parts, which an index names."""
    parts = [FILES[1]] if (source / INDEX).is_file() else []
    if missing := [name for name in FILES if not (source / name).is_file() and name not in parts]:
        raise UserError(
            f"{source} has no {' and no '.join(missing)}; give the folder of a {kind}, which has {', '.join(FILES)}"
        )


def new_folder(workdir: Any) -> RunFolder:
    """The folder of a run that is to be written. Raises: UserError if there is a run already."""
    folder = RunFolder(workdir)
    if folder.holds_run:
        raise UserError(f"--workdir={workdir} already holds a run; give a new folder")
    if folder.checkpoints_folder.exists():
        raise UserError(
            f"--workdir={workdir} holds what an import that was cut off has left; delete it, or give a new folder"
        )
    return folder


def run_of(stated: dict[str, Any], overrides: dict[str, Any], assumed: dict[str, Any], but: str = "") -> RunConfig:
    """The config of an imported run: that of configs/common.py with the values `assumed`, `stated` by the file, and the user's.

    All are by dotted names. Raises: UserError for a user's value that differs from a stated one, or names other weights to begin with;
    `but` is a key that may do so.
    """
    for name in ("model.embedding_path", "train.init_from", "train.model_of"):
        if overrides.get(name) and name != but:
            raise UserError(
                f"--config.{name}={overrides[name]!r}, but the weights are those of the file; leave this option out"
            )
    for name in stated.keys() & overrides.keys():
        if stated[name] != overrides[name]:
            raise UserError(
                f"--config.{name}={overrides[name]!r}, but the checkpoint's model has {stated[name]!r}; leave this option out"
            )
    return resolve(replaced(defaults().to_dict(), {"train.epochs": 1, **assumed, **stated, **overrides}))


def write_run(
    run: RunConfig, assets: TextAssets, variables: dict[str, Any], folder: RunFolder, overrides: dict[str, Any]
) -> None:
    """Writes the folder of a run without updates. config.json comes last, because only this file makes the folder a run.

    Before that, reads the text to score, if the user names one, and logs what it has. Raises: UserError for one that cannot be read, and
    for a folder in which another process works, or has made a run meanwhile.
    """
    if "data.directory" in overrides:
        for line in run.task.scored_corpus(run.data, assets).report:
            log.info(line)
    params = variables["params"]
    with folder.locked():
        new_folder(folder.path)
        folder.begin(assets, {name: tree for name, tree in variables.items() if name != "params"}, text={})
        progress = Progress(**folder.identity(assets), evaluated=[0])
        with closing(folder.checkpoints(run.train)) as checkpoints:
            checkpoints.save(0, params, optimizer(run.optim).init(params), vars(progress), 0.0)
        folder.write_config(run)
