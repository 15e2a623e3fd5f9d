"""The scores of a run of a sweep in a few words."""

import math
from typing import Any

from one_layer.report.naming import MEASURES
from one_layer.runs.paths import read_object
from one_layer.sweeps.plan import Run


def scores(run: Run) -> str:
    """The test scores of a finished run in a few words."""
    result = read_object(run.paths.result_file)
    named = [(split, *_main(values)) for split, values in result.get("test", {}).items() if _main(values)]
    return ", ".join(f"{split} {name} {value:.4g}" for split, name, value in named)


def first_score(result: dict[str, Any]) -> float:
    """The main score of the first test set of a `result.json`; nan if it has none."""
    found = (_main(values) for values in result.get("test", {}).values())
    return next((float(each[1]) for each in found if each), math.nan)


def _main(values: dict[str, Any]) -> tuple[str, float] | tuple[()]:
    """The name and the value of the score of a test set that people look at first."""
    return next(((name, values[name]) for name in MEASURES if name in values), ())
