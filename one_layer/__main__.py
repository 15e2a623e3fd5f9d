"""one_layer: Supermasks over one random Transformer layer.

python -m one_layer --config=FILE.py[:ARG] --workdir=DIR [--mode=MODE] [--config.a.b=VALUE ...]

In a clone of the repository, `python main.py` is the same command. `--mode=keys` lists every key of the config with its meaning; with
--config, it gives the values of that config.

python -m one_layer COMMAND --help tells of the commands that are no mode: sweep, population, compare, compile, import_fairseq,
import_roberta, import_llama, prepare_everyday, prepare_iwslt14 and prepare_wmt14.
"""

import argparse
import difflib
import logging
import os
import sys
import traceback
from pathlib import Path

from one_layer import __version__
from one_layer.cli import command, modes
from one_layer.cli.given import Given
from one_layer.commands import COMMANDS, main_of
from one_layer.system.errors import UserError

_WITHOUT_WORDS = """\
one_layer trains Transformers whose layers share one random layer under different masks, and computes with them.

Train a toy translator, in three minutes on two cores, and translate with it:

    python -m one_layer --config=configs/toy.py --workdir=runs/toy
    echo 'der hund schläft .' | python -m one_layer --mode=translate --workdir=runs/toy

--help tells of all options."""


def main(words: list[str]) -> None:
    """Calls the function of the mode that the words of the command line choose."""
    if words and not words[0].startswith("-"):
        from one_layer.tasks.known import VERBS

        known = {each: each for each in COMMANDS} | {each: f"--mode={each}" for each in (*modes.MODES, *VERBS)}
        if near := difflib.get_close_matches(words[0], known, 1):
            raise UserError(f"unexpected argument {words[0]!r}; did you mean {known[near[0]]}?")
        raise UserError(
            f"unexpected argument {words[0]!r}; give every option as --name=value, and a command, if any, as the first word: "
            f"{', '.join(COMMANDS)}"
        )
    given = Given.by(words, __doc__)
    if given.options.version:
        modes.print_text(__version__)
        return
    command.set_up()
    try:
        mode = modes.chosen(given)
        _join(given.options)
        mode.call(given)
    except (Exception, SystemExit) as error:
        if not given.options.distributed:
            raise
        # An exit would wait for the other processes, and they for it.
        if (code := command.say(error)) is None:
            traceback.print_exc()
        logging.shutdown()
        os._exit(1 if code is None else code)


def _join(options: argparse.Namespace) -> None:
    """Joins the other processes, if there are any. Only the first one logs what happens."""
    if not options.distributed:
        if options.processes != 1 or options.process != 0:
            raise UserError("--processes and --process need --distributed=HOST:PORT, where the processes meet")
        return
    if options.processes < 2:
        raise UserError(
            f"--distributed={options.distributed} needs --processes, the number of processes (2 or more), and --process, the number "
            "of this one from 0"
        )
    from one_layer.training import processes

    processes.join(options.distributed, options.processes, options.process)
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
    program = "python -m one_layer" if Path(program).name == Path(__file__).name else program
    if words[0] not in COMMANDS:
        sys.argv[0] = program  # argparse says this name
        main(words)
        return None
    name, *rest = words
    sys.argv = [program if Path(program).stem == name else f"{program} {name}", *rest]
    return main_of(name)(rest)


if __name__ == "__main__":
    run()
