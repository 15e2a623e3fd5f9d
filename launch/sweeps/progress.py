"""How far a run is: read from the files in its folder. Imports no JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from launch.sweeps.plan import Run
from one_layer.errors import UserError
from one_layer.runs.paths import read_metrics, read_object


@dataclass(frozen=True)
class Progress:
    """The last update, the number of updates (if it is known), the newest measure as text, and the seconds left (if known)."""

    update: int = 0
    updates: int | None = None
    metric: str = ""
    left: float | None = None


def progress(run: Run) -> Progress:
    """The progress of a run that has not finished. A run without metrics has none."""
    try:
        lines = read_metrics(run.paths.metrics_file)
    except UserError:  # the run itself will complain
        return Progress()
    if not lines:
        return Progress()
    update, seconds = lines[-1]["step"], lines[-1]["seconds"]
    updates = _updates(run.config["train"], lines)
    left = (updates - update) * seconds / update if updates and update else None
    return Progress(update, updates, _metric(lines), left)


def _updates(train: dict[str, Any], lines: list[dict[str, Any]]) -> int | None:
    """The number of updates. That of a run by epochs is known after its first evaluation."""
    epoch = next((line["step"] / line["train/epoch"] for line in reversed(lines) if line.get("train/epoch")), None)
    limits = [train["updates"]] if train["updates"] else []
    if train["epochs"] and epoch:
        limits.append(round(train["epochs"] * epoch))
    return min(limits) if limits else None


def _metric(lines: list[dict[str, Any]]) -> str:
    """The newest validation score, or the training loss before the first one."""
    for line in reversed(lines):
        for name in ("valid/bleu", "valid/accuracy", "valid/nll"):
            if name in line:
                return f"{name} {line[name]:.4g}"
    loss = lines[-1].get("train/loss")
    return "" if loss is None else f"train/loss {loss:.4g}"


def scores(run: Run) -> str:
    """The test scores of a finished run in a few words; empty without a result that can be read."""
    try:
        result = read_object(run.paths.result_file)
    except UserError:
        return ""
    found = []
    for split, values in result.get("test", {}).items():
        for name in ("bleu_tokenized", "accuracy", "nll"):
            if name in values:
                found.append(f"{split} {name} {values[name]:.4g}")
                break
    return ", ".join(found)
