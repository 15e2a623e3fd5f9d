"""How the commands in this folder begin and end: lines for people on standard error, a user's mistake as one of them."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable

from one_layer.errors import UserError


def run(main: Callable[[], None]) -> None:
    """Calls `main`; where that cannot go on for a user's mistake or a file, says so and exits with code 2."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        main()
    except UserError as error:
        _end(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)  # as a shell counts it
    except OSError as error:
        _end(
            f"{error.filename or 'a file'}: {error.strerror or error}; give folders and files that can be read and written"
        )


def positive(text: str) -> int:
    """An option's whole number of at least 1. Raises: ArgumentTypeError, which argparse makes a sentence of, for another."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def _end(sentence: str) -> None:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)
