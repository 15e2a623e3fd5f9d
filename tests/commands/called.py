"""A command that is called in the process of the tests, as if it were one of its own."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

from one_layer.cli import command


def called(main: Callable[[list[str]], object], *words: str) -> subprocess.CompletedProcess[str]:
    """What `main` prints, and the code with which its process would end."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            command.ended(lambda: main(list(words)))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
