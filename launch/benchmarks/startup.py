"""Measures the time from the start of a process to the first translated line: it loads a ticket and translates one line."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from launch.benchmarks.workloads import made_up_words, random_ticket
from one_layer import tickets

_ROOT = Path(__file__).resolve().parents[2]
# Prints the time at which each stage has ended.
_STAGES = """
import json, sys, time
import one_layer, one_layer.tickets
imported = time.time()
model = one_layer.load(sys.argv[1])
loaded = time.time()
model.translate([sys.argv[2]])
print(json.dumps({"imported": imported, "loaded": loaded, "translated": time.time()}))
"""


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the median seconds from the start of a process until it has imported, loaded and translated, with masks applied at load.

    The line has 8 words. Its translation, with beam 5, has 20 tokens, the most that are allowed, because random models seldom end a
    sentence. `cache` says whether JAX's compilation cache already holds the program.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ticket, words = Path(folder) / "ticket.safetensors", " ".join(made_up_words(8))
        tickets.save(ticket, random_ticket(size))
        rounds = range(1 if quick else 3)
        for cache in ("empty", "warm"):
            # The last round filled its empty cache; the warm rounds use that one.
            places = [Path(folder) / f"cache{number if cache == 'empty' else rounds[-1]}" for number in rounds]
            found = [_stages(ticket, words, place) for place in places]
            rows.append(
                {"cache": cache, **{name: statistics.median(each[name] for each in found) for name in found[0]}}
            )
    return {"seconds": rows}


def _stages(ticket: Path, words: str, cache: Path) -> dict[str, float]:
    """The seconds until a new process has ended each stage; the folder `cache` holds JAX's compilation cache."""
    keep = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"}  # as main.py
    command = [sys.executable, "-c", _STAGES, str(ticket), words]
    started = time.time()
    done = subprocess.run(command, env={**os.environ, **keep}, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {stage: ended - started for stage, ended in json.loads(done.stdout).items()}
