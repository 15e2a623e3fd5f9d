"""one_layer: Supermasks over one random Transformer layer.

python -m one_layer --config=configs/NAME.py[:ARG] --workdir=DIR [--mode=MODE] [--config.a.b=VALUE ...]

In a clone of the repository, `python main.py` is the same command. `--mode=keys` lists every key of the config with its meaning; with
--config, it gives the values of that config.

python -m one_layer COMMAND --help tells of the commands that are no mode: sweep, population, compare, convergence, compile,
import_fairseq, import_roberta, import_llama, dump_embeddings, prepare_iwslt14 and prepare_wmt14.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from absl import app, flags
from ml_collections import config_flags

from one_layer import __version__
from one_layer.cli import command, config_files, options
from one_layer.cli.overrides import keys_given
from one_layer.commands import COMMANDS, main_of
from one_layer.system.errors import UserError, counted
from one_layer.system.heap import collecting_nothing
from one_layer.system.removed import refuse_removed

if TYPE_CHECKING:
    from one_layer.tasks.model import TrainedModel

flags.adopt_module_key_flags(options)  # so that --help shows them


def _together(argv: list[str]) -> None:
    """Calls `main`. A process that fails among several ends at once: its exit would wait for the others, and they for it."""
    try:
        main(argv)
    except (Exception, SystemExit) as error:
        if not options.DISTRIBUTED.value:
            raise
        if (code := command.say(error)) is None:
            traceback.print_exc()
        logging.shutdown()
        os._exit(1 if code is None else code)


def main(argv: list[str]) -> None:
    """Calls the function of the chosen mode with the values of the flags."""
    if len(argv) > 1:
        raise UserError(
            f"unexpected argument {argv[1]!r}; give every option as --name=value, and a command, if any, as the first word: "
            f"{', '.join(COMMANDS)}"
        )
    if options.VERSION.value:
        _print(__version__)
        return
    command.set_up()
    options.check(options.MODE.value, options.given())
    _join()
    if options.MODE.value == "train":
        _train()
    elif options.MODE.value == "evaluate":
        from one_layer.runs.evaluate import evaluate

        folder = options.run_folder() if options.WORKDIR.value else None
        if folder is not None:
            folder.writes = options.PROCESS.value == 0
        evaluate(_restored(), options.SPLIT.value, folder)
    elif options.MODE.value == "export":
        from one_layer.cli.exporting import export

        export()
    elif options.MODE.value == "page":
        from one_layer.cli.paging import page

        page()
    elif options.MODE.value == "inspect":
        _inspect()
    elif options.MODE.value == "report":
        _report()
    elif options.MODE.value == "collect":
        _collect()
    elif options.MODE.value == "keys":
        _keys()
    else:
        from one_layer.data.text.streams import check_output, read_input, write_output

        check_output(options.OUTPUT.value)  # before anything is computed
        with collecting_nothing():
            model = _restored()
        model.check_verb(options.MODE.value)  # before stdin is waited for
        write_output(options.OUTPUT.value, model.lines(read_input(options.INPUT.value)))


def _join() -> None:
    """Joins the other processes, if there are any. Only the first one logs what happens."""
    if not options.DISTRIBUTED.value:
        if options.PROCESSES.value != 1 or options.PROCESS.value != 0:
            raise UserError("--processes and --process need --distributed=HOST:PORT, where the processes meet")
        return
    if options.PROCESSES.value < 2:
        raise UserError(
            f"--distributed={options.DISTRIBUTED.value} needs --processes, the number of processes (2 or more), and --process, the number "
            "of this one from 0"
        )
    from one_layer.training import processes

    processes.join(options.DISTRIBUTED.value, options.PROCESSES.value, options.PROCESS.value)
    if not processes.leads():
        logging.getLogger().setLevel(logging.WARNING)


def _train() -> None:
    from one_layer.runs.settings import resolve
    from one_layer.training.skipping import Diverged
    from one_layer.training.train import train

    folder = options.run_folder()
    if options.CONFIG.value is None:
        raise UserError("--config is missing; give one of configs/, for instance --config=configs/toy.py")
    values = config_flags.get_override_values(flags.FLAGS["config"])
    overrides = [f"config={config_flags.get_config_filename(flags.FLAGS['config'])}"]
    overrides += [f"config.{name}={value}" for name, value in values.items()]
    try:
        train(resolve(options.CONFIG.value.to_dict()), folder.path, overrides)
    except Diverged as error:
        program = ["-m", "one_layer"] if Path(sys.argv[0]).name == Path(__file__).name else sys.argv[:1]
        raise UserError(f"{error}: {shlex.join([sys.executable, *program, *sys.argv[1:]])}") from None


def _inspect() -> None:
    """Prints what a ticket contains."""
    from one_layer.tickets.inspection import describe, inspect

    _print(describe(inspect(options.TICKET.value or options.run_folder().ticket_file)))


def _report() -> None:
    """Writes tables and figures from the folders of runs. Imports no JAX."""
    from one_layer.report.watching import watch
    from one_layer.report.writing import report

    for name, flag, what in (
        ("runs", options.RUNS, "the folders of runs, as a pattern"),
        ("workdir", options.WORKDIR, "a new folder"),
    ):
        if not flag.value:
            raise UserError(f"--{name} is missing; give {what}")
    write = watch if options.WATCH.value else report
    write(options.RUNS.value, Path(options.WORKDIR.value or ""))


def _collect() -> None:
    """Writes the results of runs into one file. Imports no JAX."""
    from one_layer.runs.collection import collect

    for name, flag in (("runs", options.RUNS), ("output", options.OUTPUT)):
        if not flag.value:
            raise UserError(f"--{name} is missing; --mode=collect needs --runs=PATTERN and --output=NAME.jsonl.zst")
    runs = collect(options.RUNS.value, Path(options.OUTPUT.value))
    logging.getLogger(__name__).info("%s: %s", options.OUTPUT.value, counted(runs, "run"))


def _keys() -> None:
    """Prints every key of the config, its value and its meaning."""
    _print(config_files.keys(None if options.CONFIG.value is None else options.CONFIG.value.to_dict()))


def _print(text: str) -> None:
    from one_layer.data.text.streams import check_output

    check_output("")
    sys.stdout.buffer.write(f"{text}\n".encode())  # the terminal's encoding may lack the × and the √
    sys.stdout.buffer.flush()


def _restored() -> TrainedModel:
    """The model from the ticket or checkpoint. If a config is given, its section `evaluation` replaces the model's."""
    if options.TICKET.value:
        from one_layer.tickets import restore_ticket

        for name in _mesh():
            raise UserError(
                f"--config.mesh.{name} has no effect beside --ticket, whose model is on one device; leave it out"
            )
        model = restore_ticket(options.TICKET.value, packed=options.TICKET_MODE.value == "packed")
    else:
        from one_layer.runs.restore import restore_run

        model = restore_run(options.run_folder(), options.CHECKPOINT.value, _mesh())
    if options.CONFIG.value is not None:
        from one_layer.runs.rescoring import rescored

        overrides = config_flags.get_override_values(flags.FLAGS["config"])
        model = rescored(model, options.CONFIG.value.to_dict(), overrides)
    if options.ENGINE.value == "jax":
        return model
    from one_layer.importers.ctranslate2 import searching

    return searching(model, options.ENGINE.value)


def _mesh() -> dict[str, int]:
    """The keys of the section `mesh` that the command line gives."""
    given = {} if options.CONFIG.value is None else config_flags.get_override_values(flags.FLAGS["config"])
    return {name.removeprefix("mesh."): value for name, value in given.items() if name.startswith("mesh.")}


def run() -> None:
    """Entry point."""
    command.run(_run)


def _run() -> int | None:
    program, *words = sys.argv
    if words and words[0] in COMMANDS:
        name, *rest = words
        program = "python -m one_layer" if Path(program).name == Path(__file__).name else program
        sys.argv = [program if Path(program).stem == name else f"{program} {name}", *rest]  # argparse says this name
        return main_of(name)(rest)
    app.run(_together, flags_parser=_parse)
    return None


def _parse(argv: list[str]) -> list[str]:
    """Parses the flags. All errors of absl and ml_collections about flags, configs and overrides become one sentence."""
    try:
        rest = _flags_and_rest(argv)
        # A missing file raises only when an attribute is read.
        if flags.FLAGS["config"].present and not hasattr(options.CONFIG.value, "to_dict"):
            raise command.no_config(_config_in(argv), options.CONFIG.value)
        return rest
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError, OSError, ImportError) as error:
        if command.raised_by_config(error):
            raise command.unloadable(_config_in(argv), error) from None
        refuse_removed(keys_given(argv))
        raise UserError(command.sentence(str(error))) from None
    except Exception as error:
        raise command.unloadable(_config_in(argv), error) from None


def _flags_and_rest(argv: list[str]) -> list[str]:
    """Gives the flags their values. Returns: the other words. After help, absl would end with code 1, which says that something failed."""
    try:
        return flags.FLAGS(argv)
    except SystemExit:
        if any(re.fullmatch(r"--?(help|helpfull|helpshort|helpxml|\?)(=.*)?", word) for word in argv[1:]):
            sys.exit(0)
        raise


def _config_in(argv: list[str]) -> str:
    """The value of --config on a command line, for a message: the flag itself has none if the file cannot be loaded."""
    found = re.search(r"^--?config[= \n](.*)$", "\n".join(argv), re.MULTILINE)
    return found[1] if found else ""


if __name__ == "__main__":
    run()
