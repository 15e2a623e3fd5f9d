"""A separate process that imports, loads a ticket and translates the lines of a file, and reports time and memory after each stage.

    python -m launch.benchmarks.first_line TICKET MODE INPUT STARTED

MODE is `packed` or `materialized`. STARTED is the time in seconds at which the process was started. It prints a JSON object with the
stages `imported`, `loaded` and `translated`. Each has `seconds` since STARTED and `peak_bytes`, the largest resident size so far (0
on systems other than Linux).
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
    """Runs this file on a line of `words`; the folder `cache` holds JAX's compilation cache."""
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
    """Runs the stages in this process and prints the JSON object."""
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
    """Returns the peak memory of this process alone. getrusage does not give it: there a child starts with its parent's peak."""
    if sys.platform != "linux":
        return 0
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
