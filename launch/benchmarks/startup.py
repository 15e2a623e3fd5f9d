"""Measures the time from the start of a process to the first translated line: it loads a ticket and translates one line."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from launch.benchmarks.first_line import first_line
from launch.benchmarks.workloads import made_up_words, random_ticket
from one_layer import tickets


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
            found = [first_line(ticket, "materialized", words, place) for place in places]
            seconds = {stage: statistics.median(each[stage]["seconds"] for each in found) for stage in found[0]}
            rows.append(
                {"cache": cache, **seconds, "peak_bytes": max(each["translated"]["peak_bytes"] for each in found)}
            )
    return {"seconds": rows}
