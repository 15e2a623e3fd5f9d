"""Starts and ends the commands of this folder: logs to standard error, and prints a user's mistake as one line there."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable

from one_layer.cli.command import exit_unread, in_utf8, say
from one_layer.system.errors import UserError
from one_layer.system.files import at_home


def run(main: Callable[[], None]) -> None:
    """Calls `main`. If a user's mistake or a file stops it, prints one sentence and exits with code 2; for full memory, with code 1.

    Ctrl-C and a closed pipe exit with 128 + the signal's number, as shells expect.
    """
    in_utf8()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        try:
            sys.argv = [*map(at_home, sys.argv)]
            main()
        finally:
            sys.stdout.flush()  # a closed pipe is noticed here, not when Python ends
    except (UserError, MemoryError, RuntimeError) as error:
        if (code := say(error)) is None:
            raise
        sys.exit(code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        exit_unread()
    except OSError as error:
        where = f"{error.filename or 'a file'}: {error.strerror or error}"
        sys.exit(say(UserError(f"{where}; give folders and files that can be read and written")))


def positive(text: str) -> int:
    """Parses an option's value as an integer of at least 1. Raises: ArgumentTypeError, which argparse reports, for anything else."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)
