"""Writes the results of a sweep as one CSV file: a row for each run, whether it has finished or not."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

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
