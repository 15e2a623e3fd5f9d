"""A process of its own: imports, loads a ticket, translates the lines of a file, and says when each was done and how large it was.

    python -m launch.benchmarks.first_line TICKET MODE INPUT STARTED

MODE is `packed` or `materialized`, STARTED the time in seconds at which the process was begun. Prints a JSON object: `imported`,
`loaded` and `translated`, each with `seconds` since then and `peak_bytes`, the greatest resident size so far (0 where the system is
not Linux).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

Stages = dict[str, dict[str, float]]


def first_line(ticket: Path, mode: str, words: str, cache: Path) -> Stages:
    """Runs this file on a line of `words`, with JAX's compiled programs kept in the folder `cache`."""
    keep = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"}  # as main.py
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_text(words + "\n")
        command = [sys.executable, "-m", __spec__.name, str(ticket), mode, str(lines), str(time.time())]
        done = subprocess.run(
            command, env={**os.environ, **keep}, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
    return json.loads(done.stdout)


def main(ticket: str, mode: str, lines: str, started: str) -> None:
    """The process."""
    stages: dict[str, Any] = {}

    def done(stage: str) -> None:
        stages[stage] = {"seconds": time.time() - float(started), "peak_bytes": _peak_bytes()}

    import one_layer

    done("imported")
    model = one_layer.load(ticket, packed=mode == "packed")
    done("loaded")
    model.lines(Path(lines).read_text("utf-8").splitlines())
    done("translated")
    print(json.dumps(stages))


def _peak_bytes() -> int:
    """Of this process alone, which getrusage does not say: there a child begins with its parent's."""
    if sys.platform != "linux":
        return 0
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
