"""The process of a command: readable logs, and one sentence in the place of a traceback."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from one_layer.cli import config_files
from one_layer.system.cuda_graphs import keep_loops_on_gpu
from one_layer.system.errors import UserError, of_a_file
from one_layer.system.files import at_home
from one_layer.system.heap import collect_seldom, keep_freed_memory
from one_layer.system.program_cache import keep_programs


def set_up() -> None:
    """Makes the logs readable, and keeps what saves time: freed memory, compiled programs between runs, and loops in CUDA graphs.

    What the user says in JAX_COMPILATION_CACHE_DIR and XLA_FLAGS goes first.
    """
    keep_freed_memory()
    collect_seldom()
    keep_programs()
    keep_loops_on_gpu(exchanges=not any(word.startswith("--distributed") for word in sys.argv))
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
            handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    sys.unraisablehook = _unraisable


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """Hides the tracebacks of readers that Orbax leaves open after a damaged checkpoint: our own error already reports it."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(problem.exc_traceback)]
    if not any(module.startswith("orbax.") for module in modules) and str(problem.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(problem)


def run(main: Callable[[], int | None]) -> None:
    """Runs a command from its beginning to its end: `main` returns the exit code. Logs go to standard error.

    Words of the command line may begin in the home folder (~/), and name the project's configs as in a clone of the repository.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("jax").setLevel(logging.WARNING)  # without its search for devices
    # What Orbax logs: what it closes, warnings about intended settings, and errors that it raises too. asyncio reports the same errors
    # once more, at a random time.
    for library in ("absl", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    config_files.make_importable()

    def whole() -> None:
        sys.argv = [config_files.resolved(at_home(word)) for word in sys.argv]
        try:
            sys.exit(main())
        finally:
            if sys.stdout:
                sys.stdout.flush()  # a closed pipe is noticed here, not when Python ends

    ended(whole)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises: UserError with argparse's sentence."""
        raise UserError(f"{message.removeprefix('argument ')}; --help tells of all options")


def parser_of(documentation: str | None) -> argparse.ArgumentParser:
    """The parser of a command that is no mode, which shows its `documentation` as it is written. Options are given by their whole names."""
    return _Parser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)


def positive(text: str) -> int:
    """Parses an option's value as an integer of at least 1. Raises: ArgumentTypeError, which argparse reports, for anything else."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def folder(text: str) -> Path:
    """Parses an option's value as a folder. Raises: ArgumentTypeError for an empty one, such as that of an unset variable of the shell."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; give the name of a folder")
    return Path(text)


def ended(command: Callable[[], None]) -> None:
    """Calls `command`. A user's mistake prints one line and exits with code 2; so does memory that ran out, with code 1.

    Ctrl-C, SIGTERM and a closed pipe exit with 128 + the signal's number, as shells expect.
    """
    try:
        command()
    except (UserError, MemoryError, RuntimeError) as error:
        if (code := say(error)) is None:
            raise
        sys.exit(code)
    except KeyboardInterrupt as interruption:
        # After training has saved a checkpoint, the exception carries the update and the signal.
        number, saved = getattr(interruption, "number", signal.SIGINT), getattr(interruption, "step", None)
        goes_on = "" if saved is None else f" after update {saved}, which is saved; the same command goes on from there"
        print(f"interrupted{goes_on}", file=sys.stderr)
        os._exit(128 + number)  # Python's normal exit crashes while XLA still computes
    except BrokenPipeError:  # nobody reads the output any more, for instance in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's last flush does not fail too
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if (mistake := of_a_file(error)) is None:
            raise
        sys.exit(say(mistake))


def say(error: BaseException) -> int | None:
    """Prints a user's mistake, or that memory ran out, as one line.

    Returns: the exit code; None for any other error, of which nothing is printed.
    """
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    # JAX has no type of its own for this; its message begins with the name of XLA's status.
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" in str(error)):
        reason = " ".join(str(error).split())[:200] or "out of memory"
        print(
            f"error: there is too little memory ({reason}); where a model is at work, lower evaluation.max_tokens or evaluation.beam to "
            "translate or to score, and data.max_tokens to train",
            file=sys.stderr,
        )
        return 1
    return None
