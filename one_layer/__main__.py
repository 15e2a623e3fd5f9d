"""one_layer: Supermasks over one random Transformer layer.

python -m one_layer --config=FILE.py[:ARG] --workdir=DIR [--mode=MODE] [--config.a.b=VALUE ...]

In a clone of the repository, `python main.py` is the same command. `--mode=keys` lists every key of the config with its meaning; with
--config, it gives the values of that config.

python -m one_layer COMMAND --help tells of the commands that are no mode: sweep, population, compare, compile, import_fairseq,
import_roberta, import_llama, prepare_everyday, prepare_iwslt14 and prepare_wmt14.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from pathlib import Path

from absl import app, flags

from one_layer import __version__
from one_layer.cli import command, modes, options
from one_layer.cli.overrides import keys_given
from one_layer.commands import COMMANDS, main_of
from one_layer.system.errors import UserError
from one_layer.system.removed import refuse_removed

flags.adopt_module_key_flags(options)  # so that --help shows them

_WITHOUT_WORDS = """\
one_layer trains Transformers whose layers share one random layer under different masks, and computes with them.

Train a toy translator, in three minutes on two cores, and translate with it:

    python -m one_layer --config=configs/toy.py --workdir=runs/toy
    echo 'der hund schläft .' | python -m one_layer --mode=translate --workdir=runs/toy

--help tells of all options."""


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
    """Calls the function of the chosen mode."""
    if len(argv) > 1:
        raise UserError(
            f"unexpected argument {argv[1]!r}; give every option as --name=value, and a command, if any, as the first word: "
            f"{', '.join(COMMANDS)}"
        )
    if options.VERSION.value:
        modes.print_text(__version__)
        return
    command.set_up()
    mode = modes.chosen()
    _join()
    mode.call()


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


def run() -> None:
    """Entry point."""
    command.run(_run)


def _run() -> int | None:
    program, *words = sys.argv
    if not words:
        modes.print_text(_WITHOUT_WORDS)
        return None
    if words[0] in COMMANDS:
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
    except BrokenPipeError:  # of a help that nobody reads
        raise
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
