"""one_layer: Supermasks over one random Transformer layer.

python -m one_layer --config=configs/NAME.py[:ARG] --workdir=DIR [--mode=MODE] [--config.a.b=VALUE ...]

In a clone of the repository, `python main.py` is the same command. `--mode=keys` lists every key of the config with its meaning; with
--config, it gives the values of that config.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from absl import app, flags
from ml_collections import config_flags

from one_layer import __version__, command, config_files
from one_layer.errors import UserError

if TYPE_CHECKING:
    from one_layer.runs.folder import RunFolder
    from one_layer.tasks.model import TrainedModel

_TOGETHER = ("distributed", "processes", "process")
# The flags that each mode uses.
_MODES = {
    "train": ("config", "workdir", *_TOGETHER),
    "evaluate": ("config", "workdir", "checkpoint", "ticket", "ticket_mode", "split", *_TOGETHER),
    "export": ("config", "workdir", "checkpoint", "precision"),
    "inspect": ("workdir", "ticket"),
    "report": ("workdir", "runs"),
    "keys": ("config",),
}
# Those of the modes for raw lines, which the tasks add: translate, classify, generate and fill.
_OF_LINES = ("config", "workdir", "checkpoint", "ticket", "ticket_mode", "input", "output")
_FLAGS = sorted({*_OF_LINES, *(name for names in _MODES.values() for name in names)})
_CONFIG = config_flags.DEFINE_config_file("config", None, "The config, for instance configs/toy.py:one_layer.")
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.")
_MODE = flags.DEFINE_string(
    "mode",
    "train",
    "What to do: train, evaluate, translate, classify, generate, fill, export, inspect, report or keys.",
)
_CHECKPOINT = flags.DEFINE_string("checkpoint", "best", "best, last, average:N, average-best:N or a step.")
_TICKET = flags.DEFINE_string(
    "ticket",
    "",
    "The ticket to evaluate, translate, classify, generate or fill with, or to inspect, instead of a checkpoint.",
)
_TICKET_MODE = flags.DEFINE_enum(
    "ticket_mode",
    "materialized",
    ["materialized", "packed"],
    "materialized: apply the masks once, when the ticket is loaded. packed: keep them as bits, which takes less memory.",
)
_PRECISION = flags.DEFINE_enum(
    "precision",
    "float32",
    ["float32", "bfloat16", "int8", "int4"],
    "For export: the precision of trained and fixed matrices; masks always have one bit.",
)
_SPLIT = flags.DEFINE_string(
    "split", "test", "What to evaluate: valid, the name of a test set, or test for all test sets."
)
_VERSION = flags.DEFINE_boolean("version", False, "Print the version, and do nothing else.")
_DISTRIBUTED = flags.DEFINE_string(
    "distributed", "", "Train or evaluate with several processes, which meet at this HOST:PORT of the first one."
)
_PROCESSES = flags.DEFINE_integer("processes", 1, "With --distributed: how many processes there are.")
_PROCESS = flags.DEFINE_integer("process", 0, "With --distributed: the number of this process, from 0.")
_INPUT = flags.DEFINE_string("input", "", "The lines to translate, classify, continue or fill; stdin by default.")
_RUNS = flags.DEFINE_string(
    "runs", "", "The folders of runs to report on, as a pattern, for instance 'runs/figure2/*'."
)
_OUTPUT = flags.DEFINE_string("output", "", "The file for translations or labels; stdout by default.")


def _together(argv: list[str]) -> None:
    """Calls `main`. A process that fails among several ends at once: its exit would wait for the others, and they for it."""
    try:
        main(argv)
    except (Exception, SystemExit) as error:
        if not _DISTRIBUTED.value:
            raise
        if (code := command.say(error)) is None:
            traceback.print_exc()
        logging.shutdown()
        os._exit(1 if code is None else code)


def main(argv: list[str]) -> None:
    """Calls the function of the chosen mode with the values of the flags."""
    if len(argv) > 1:
        raise UserError(f"unexpected argument {argv[1]!r}; give every option as --name=value")
    if _VERSION.value:
        _print(__version__)
        return
    command.set_up()
    _check_flags(_MODE.value, [name for name in _FLAGS if flags.FLAGS[name].present])
    _join()
    if _MODE.value == "train":
        _train()
    elif _MODE.value == "evaluate":
        from one_layer.runs.evaluate import evaluate

        folder = _folder() if _WORKDIR.value else None
        if folder is not None:
            folder.writes = _PROCESS.value == 0
        evaluate(_restored(), _SPLIT.value, folder)
    elif _MODE.value in ("export", "inspect"):
        _ticket()
    elif _MODE.value == "report":
        _report()
    elif _MODE.value == "keys":
        _keys()
    else:
        from one_layer.data.text.streams import check_output, read_input, write_output

        check_output(_OUTPUT.value)  # before anything is computed
        model = _restored()
        model.check_verb(_MODE.value)  # before stdin is waited for
        write_output(_OUTPUT.value, model.lines(read_input(_INPUT.value)))


def _join() -> None:
    """Joins the other processes, if there are any. Only the first one logs what happens."""
    if not _DISTRIBUTED.value:
        if _PROCESSES.value != 1 or _PROCESS.value != 0:
            raise UserError("--processes and --process need --distributed=HOST:PORT, where the processes meet")
        return
    if _PROCESSES.value < 2:
        raise UserError(
            f"--distributed={_DISTRIBUTED.value} needs --processes, the number of processes (2 or more), and --process, the number of this "
            "one from 0"
        )
    from one_layer.training import processes

    processes.join(_DISTRIBUTED.value, _PROCESSES.value, _PROCESS.value)
    if not processes.leads():
        logging.getLogger().setLevel(logging.WARNING)


def _check_flags(mode: str, given: list[str]) -> None:
    """Raises: UserError for an unknown mode, and for a flag that has no effect in this mode, or beside the others."""
    if mode not in _MODES:
        _check_verb(mode)
    for name in given:
        if name not in _MODES.get(mode, _OF_LINES):
            raise UserError(f"--mode={mode} has no use for --{name}; leave it out")
    if "ticket" not in given:
        if "ticket_mode" in given:
            raise UserError("--ticket_mode needs --ticket; of a run's folder, masks are always materialized")
        return
    for name in ("checkpoint",) if mode == "evaluate" else ("checkpoint", "workdir"):  # evaluate writes into --workdir
        if name in given:
            raise UserError(f"--{name} has no effect beside --ticket, which is the whole model; leave one of them out")


def _check_verb(mode: str) -> None:
    from one_layer.tasks import TASKS

    verbs = [task.model.verb for task in TASKS.values()]
    if mode not in verbs:
        raise UserError(f"--mode={mode} is unknown; known are {', '.join((*_MODES, *verbs))}")


def _folder() -> RunFolder:
    from one_layer.runs.folder import RunFolder

    if not _WORKDIR.value:
        raise UserError("--workdir is missing; give the folder of the run")
    return RunFolder(_WORKDIR.value)


def _train() -> None:
    from one_layer.runs.settings import resolve
    from one_layer.training.skipping import Diverged
    from one_layer.training.train import train

    folder = _folder()
    if _CONFIG.value is None:
        raise UserError("--config is missing; give one of configs/, for instance --config=configs/toy.py")
    values = config_flags.get_override_values(flags.FLAGS["config"])
    overrides = [f"config={config_flags.get_config_filename(flags.FLAGS['config'])}"]
    overrides += [f"config.{name}={value}" for name, value in values.items()]
    try:
        train(resolve(_CONFIG.value.to_dict()), folder.path, overrides)
    except Diverged as error:
        raise UserError(f"{error}: {shlex.join([sys.executable, *sys.argv])}") from None


def _ticket() -> None:
    """Writes the ticket of a checkpoint into the run's folder, or prints what a ticket contains."""
    if _MODE.value == "export":
        from one_layer.models.pruning import kept_layers
        from one_layer.runs.restore import restore_run
        from one_layer.tickets import export

        model = _kept_layers(restore_run(_folder(), _CHECKPOINT.value, _mesh()))
        path = _folder().ticket_in(_PRECISION.value, kept_layers(model.config))
        export(model, path, _PRECISION.value)
    else:
        from one_layer.tickets.inspection import describe, inspect

        _print(describe(inspect(_TICKET.value or _folder().ticket_file)))


def _kept_layers(model: TrainedModel) -> TrainedModel:
    """`model` without the layers that `--config.model.encoder_layers` and `.decoder_layers` leave out. Other keys are for training."""
    from one_layer.runs.rescoring import without_layers

    if _CONFIG.value is None:
        return model
    overrides = config_flags.get_override_values(flags.FLAGS["config"])
    if others := sorted(overrides.keys() - {"model.encoder_layers", "model.decoder_layers"}):
        raise UserError(
            f"--mode=export has no use for --config.{others[0]}; it takes all settings from the run, but for layers that "
            "--config.model.encoder_layers and --config.model.decoder_layers leave out"
        )
    return without_layers(model, overrides)


def _report() -> None:
    """Writes tables and figures from the folders of runs. Imports no JAX."""
    from one_layer.report.writing import report

    for name, flag, what in (
        ("runs", _RUNS, "the folders of runs, as a pattern"),
        ("workdir", _WORKDIR, "a new folder"),
    ):
        if not flag.value:
            raise UserError(f"--{name} is missing; give {what}")
    report(_RUNS.value, Path(_WORKDIR.value or ""))


def _keys() -> None:
    """Prints every key of the config, its value and its meaning."""
    _print(config_files.keys(None if _CONFIG.value is None else _CONFIG.value.to_dict()))


def _print(text: str) -> None:
    from one_layer.data.text.streams import check_output

    check_output("")
    sys.stdout.buffer.write(f"{text}\n".encode())  # the terminal's encoding may lack the × and the √
    sys.stdout.buffer.flush()


def _restored() -> TrainedModel:
    """The model from the ticket or checkpoint. If a config is given, its section `evaluation` replaces the model's."""
    from one_layer.runs.rescoring import rescored

    if _TICKET.value:
        from one_layer.tickets import restore_ticket

        for name in _mesh():
            raise UserError(
                f"--config.mesh.{name} has no effect beside --ticket, whose model is on one device; leave it out"
            )
        model = restore_ticket(_TICKET.value, packed=_TICKET_MODE.value == "packed")
    else:
        from one_layer.runs.restore import restore_run

        model = restore_run(_folder(), _CHECKPOINT.value, _mesh())
    if _CONFIG.value is None:
        return model
    overrides = config_flags.get_override_values(flags.FLAGS["config"])
    return rescored(model, _CONFIG.value.to_dict(), overrides)


def _mesh() -> dict[str, int]:
    """The keys of the section `mesh` that the command line gives."""
    given = {} if _CONFIG.value is None else config_flags.get_override_values(flags.FLAGS["config"])
    return {name.removeprefix("mesh."): value for name, value in given.items() if name.startswith("mesh.")}


def run() -> None:
    """Entry point."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    command.in_utf8()
    config_files.make_importable()
    sys.argv = [config_files.resolved(word) for word in sys.argv]
    command.ended(partial(app.run, _together, flags_parser=_parse))


def _parse(argv: list[str]) -> list[str]:
    """Parses the flags. All errors of absl and ml_collections about flags, configs and overrides become one sentence."""
    try:
        rest = flags.FLAGS(argv)
        # A missing file raises only when an attribute is read.
        if flags.FLAGS["config"].present and not hasattr(_CONFIG.value, "to_dict"):
            raise command.no_config(_config_in(argv), _CONFIG.value)
        return rest
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError, OSError, ImportError) as error:
        if command.raised_by_config(error):
            raise command.unloadable(_config_in(argv), error) from None
        raise UserError(command.sentence(str(error))) from None
    except Exception as error:
        raise command.unloadable(_config_in(argv), error) from None


def _config_in(argv: list[str]) -> str:
    """The value of --config on a command line, for a message: the flag itself has none if the file cannot be loaded."""
    found = re.search(r"^--?config[= \n](.*)$", "\n".join(argv), re.MULTILINE)
    return found[1] if found else ""


if __name__ == "__main__":
    run()
