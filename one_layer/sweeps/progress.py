"""How far a run is: read from the files in its folder. Imports no JAX."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from one_layer.runs.paths import read_metrics, read_object
from one_layer.sweeps.jobs import log_file
from one_layer.sweeps.plan import Run
from one_layer.system.errors import UserError

_TOTAL = re.compile(r"\bupdate \d+/(\d+)  loss ")  # as one_layer.training.progress_line writes it


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
    update, seconds = lines[-1]["step"], lines[-1].get("seconds")
    updates = _updates(run)
    left = (updates - update) * seconds / update if updates and update and seconds is not None else None
    return Progress(update, updates, _metric(lines), left)


def _updates(run: Run) -> int | None:
    """The number of updates, which the run writes into its log. Before that, the config alone knows it, unless it is one of epochs."""
    log, train = log_file(run), run.config["train"]
    said = _TOTAL.findall(log.read_text("utf-8", "replace")) if log.exists() else []
    if said:
        return int(said[-1])  # a run may have been made longer
    return train["updates"] if train["updates"] and not train["epochs"] else None


def _metric(lines: list[dict[str, Any]]) -> str:
    """The newest validation score, or the training loss before the first one."""
    for line in reversed(lines):
        for name in ("valid/bleu", "valid/accuracy", "valid/nll"):
            if name in line:
                return f"{name} {float(line[name]):.4g}"  # "nan" is a string in the file
    loss = lines[-1].get("train/loss")
    return "" if loss is None else f"train/loss {float(loss):.4g}"


def scores(run: Run) -> str:
    """The test scores of a finished run in a few words; empty without a result that can be read."""
    try:
        result = read_object(run.paths.result_file)
    except UserError:
        return ""
    named = [(split, *_main(values)) for split, values in result.get("test", {}).items() if _main(values)]
    return ", ".join(f"{split} {name} {value:.4g}" for split, name, value in named)


def first_score(result: dict[str, Any]) -> float:
    """The main score of the first test set of a `result.json`; nan if it has none."""
    found = (_main(values) for values in result.get("test", {}).values())
    return next((float(each[1]) for each in found if each), math.nan)


def _main(values: dict[str, Any]) -> tuple[str, float] | tuple[()]:
    """The name and the value of the score of a test set that people look at first."""
    return next(((name, values[name]) for name in ("bleu_tokenized", "accuracy", "nll") if name in values), ())
