"""Measures a ticket's size, compared with one bit per masked weight, and its loading time."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from launch.benchmarks.workloads import in_turn, random_ticket
from one_layer import tickets
from one_layer.tickets.inspection import inspect


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures a ticket of random scores.

    `bound_bytes` is H(kept) bits per masked weight. `load_seconds` includes the checks and drawing the random weights.
    """
    ticket = random_ticket(size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ticket.safetensors"
        total = tickets.save(path, ticket)["total"]
        found = inspect(path)
        seconds = in_turn({"load": partial(tickets.load, path)}, 1 if quick else 5)
    bound = sum(matrix.bound for matrix in found.matrices)
    return {"bytes": total, "bound_bytes": bound, "text_bytes": found.text, "load_seconds": seconds["load"]}
