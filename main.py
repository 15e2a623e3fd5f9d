"""one_layer: Supermasks over one random Transformer layer.

python main.py --config=configs/NAME.py[:ARG] --workdir=DIR [--mode=MODE] [--config.a.b=VALUE ...]
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

from one_layer.errors import UserError

if TYPE_CHECKING:
    from one_layer.runs.folder import RunFolder
    from one_layer.tasks.model import TrainedModel

_MODES = ["train", "evaluate", "translate", "classify", "export", "inspect"]
_CONFIG = config_flags.DEFINE_config_file("config", None, "The config, for instance configs/toy.py:one_layer.")
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.")
_MODE = flags.DEFINE_enum("mode", "train", _MODES, "What to do.")
_CHECKPOINT = flags.DEFINE_string("checkpoint", "best", "best, last, average:N, average-best:N or a step.")
_TICKET = flags.DEFINE_string(
    "ticket", "", "A ticket instead of a checkpoint: to evaluate, translate or classify with, or to inspect."
)
_TICKET_MODE = flags.DEFINE_enum(
    "ticket_mode",
    "materialized",
    ["materialized", "packed"],
    "Masks multiplied out once, or kept as bits: less memory.",
)
_SPLIT = flags.DEFINE_string("split", "test", "What to evaluate: valid, the name of a test set, or test: all of these.")
_INPUT = flags.DEFINE_string("input", "", "The lines to translate or classify; stdin by default.")
_OUTPUT = flags.DEFINE_string("output", "", "Where translations or labels go; stdout by default.")


def main(argv: list[str]) -> None:
    """Turns flags into a call of the mode's function."""
    if len(argv) > 1:
        raise UserError(f"unexpected argument {argv[1]!r}; every option is given as --name=value")
    _set_up()
    if _MODE.value == "train":
        _train()
    elif _MODE.value == "evaluate":
        from one_layer.runs.evaluate import evaluate

        evaluate(_restored(), _SPLIT.value, _folder() if _WORKDIR.value else None)
    elif _MODE.value in ("export", "inspect"):
        _ticket()
    else:
        from one_layer.data.text.streams import read_input, write_output

        write_output(_OUTPUT.value, _restored().serve(_MODE.value, read_input(_INPUT.value)))


def _folder() -> RunFolder:
    from one_layer.runs.folder import RunFolder

    if not _WORKDIR.value:
        raise UserError("--workdir is missing; give the folder of the run")
    return RunFolder(_WORKDIR.value)


def _train() -> None:
    from one_layer.runs.settings import resolve
    from one_layer.training.train import train

    folder = _folder()
    if _CONFIG.value is None:
        raise UserError("--config is missing; give one of configs/, for instance --config=configs/toy.py")
    values = config_flags.get_override_values(flags.FLAGS["config"])
    overrides = [f"config.{name}={value}" for name, value in values.items()]
    train(resolve(_CONFIG.value.to_dict()), folder.path, overrides)


def _ticket() -> None:
    """Writes the ticket of a checkpoint into its folder, or says what is in one."""
    if _MODE.value == "export":
        from one_layer.runs.restore import restore_run
        from one_layer.tickets import export

        export(restore_run(_folder(), _CHECKPOINT.value), _folder().ticket_file)
    else:
        from one_layer.tickets.inspection import describe, inspect

        print(describe(inspect(_TICKET.value or _folder().ticket_file)), flush=True)


def _restored() -> TrainedModel:
    """What to score or translate with; where a config is given, searching as it says."""
    from one_layer import load
    from one_layer.runs.settings import rescored

    if _TICKET.value:
        model = load(_TICKET.value, packed=_TICKET_MODE.value == "packed")
    else:
        from one_layer.runs.restore import restore_run

        model = restore_run(_folder(), _CHECKPOINT.value)
    if _CONFIG.value is None:
        return model
    overrides = config_flags.get_override_values(flags.FLAGS["config"])
    return rescored(model, _CONFIG.value.to_dict(), overrides)


def _set_up() -> None:
    """Logs that a person can read; compiled programs are kept between runs, where the user has not said otherwise."""
    absl_logging.get_absl_handler().setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path.home() / ".cache" / "one_layer" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
    logging.getLogger("jax").setLevel(logging.WARNING)
    logging.getLogger("absl").setLevel(logging.CRITICAL)  # Orbax warns of what is meant, and raises what it logs
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    sys.unraisablehook = _unraisable


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """One sentence says that a checkpoint is damaged; the readers that Orbax then leaves behind need not add tracebacks."""
    if str(problem.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(problem)


def run() -> None:
    """Entry point: a user's mistake ends with one line and exit code 2; Ctrl-C and a reader that has gone as a shell counts them."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        app.run(main, flags_parser=_parse)
    except UserError as error:
        sys.exit(_say(error))
    except KeyboardInterrupt as interruption:
        # Training that has saved a checkpoint says at which update, and which signal it was.
        number, saved = getattr(interruption, "number", signal.SIGINT), getattr(interruption, "step", None)
        goes_on = "" if saved is None else f" after update {saved}, which is saved; the same command goes on from there"
        print(f"interrupted{goes_on}", file=sys.stderr)
        os._exit(128 + number)  # Python's own end crashes where XLA still computes
    except BrokenPipeError:  # `| head` has what it wanted; Python would complain of it once more when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if not (error.filename or error.errno in (errno.ENOSPC, errno.EDQUOT)):
            raise  # about no file, and so no place that a user could choose better
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_say(UserError(f"{where}{error.strerror}; give a folder and files that can be read and written")))


def _parse(argv: list[str]) -> list[str]:
    """Flags, with every way in which ml_collections says that a config or an override is bad turned into one sentence."""
    try:
        rest = flags.FLAGS(argv)
        if _CONFIG.value is not None:
            _CONFIG.value.to_dict()  # a config file that is not there is noticed only now
        return rest
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError, OSError, ImportError) as error:
        raise UserError(_sentence(str(error))) from None


def _sentence(text: str) -> str:
    """The last thing that an error says, without the traceback and the escapes that ml_collections puts into its text."""
    text = text.replace("\\n", "\n").replace("\\'", "'").strip()
    if "Traceback" in text:
        return text.split("\n")[-1].partition(": ")[2]
    if "Failed loading config file" in text:
        return f"the config cannot be loaded: {text.split(chr(10))[-1].strip()}; see configs/ for those that there are"
    unknown = re.match(r"\W*(\w+)\W+Did you mean \W*(\w+)", text)
    if unknown:
        return f"unknown config key {unknown[1]!r}; did you mean {unknown[2]!r}?"
    if re.fullmatch(r"\W*\w+\W*", text):
        return f"unknown config key {text.strip(chr(39) + chr(34))!r}; configs/common.py declares all keys"
    return "; ".join(line.strip() for line in text.split("\n") if line.strip())


def _say(error: UserError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
