"""The results of a sweep: one CSV file with a row for each run, whether it has finished or not, and scores in a few words."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from one_layer.runs.convergence import MAIN_SCORES
from one_layer.runs.paths import read_object
from one_layer.runs.records import flatten
from one_layer.sweeps.plan import ARGUMENT, Plan, Run
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

# What is not a number or a name for people to sort by.
_LEFT_OUT = ("config", "overrides", "seed", "examples")


def write(plan: Plan, states: dict[str, str]) -> Path:
    """Writes `results.csv` into the sweep's folder. Its columns: run, state, what the sweep varies, and all of `result.json`."""
    path = plan.workdir / "results.csv"
    rows = [_row(run, states[run.name], plan) for run in plan.runs]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue())
    return path


def _row(run: Run, state: str, plan: Plan) -> dict[str, Any]:
    varied = dict.fromkeys(key for each in plan.runs for key in each.varied)
    config = flatten(run.config)
    row = {"run": run.name, "state": state}
    # A key that only other runs vary has the config's own value here. A resolved config lacks those of other tasks, which have no effect.
    row |= {
        key: run.varied.get(ARGUMENT, "") if key == ARGUMENT else _cell(config.get(key, run.varied.get(key)))
        for key in varied
    }
    try:
        result = read_object(run.paths.result_file) if state == "finished" else {}
    except UserError as error:
        return row | {"state": str(error)}
    return row | {name: _cell(value) for name, value in flatten(result).items() if name.split(".")[0] not in _LEFT_OUT}


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | tuple) else "" if value is None else value


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
    return next(((name, values[name]) for name in MAIN_SCORES if name in values), ())
