"""The folder of a sweep: whether a sweep may begin or go on there, and its file `sweep.json`."""

import os
from pathlib import Path
from typing import Any

from one_layer.runs.paths import SWEEP_FILE, RunPaths, read_object
from one_layer.runs.records import PLACES_OF_TEXT, changes_scores, flatten
from one_layer.sweeps.places import PLACES, homes, in_sweep
from one_layer.sweeps.plan import Plan, Run
from one_layer.system.errors import UserError
from one_layer.system.files import write_json
from one_layer.system.removed import without_idle


def claim(plan: Plan) -> None:
    """Checks that the folder is new or holds this sweep, and records the sweep there, with the values that its runs have now.

    A sweep may have grown, and its runs may have other values of what may change in a run. Raises: UserError, which names what
    differs, for a folder with another sweep or other files.
    """
    path = plan.workdir / SWEEP_FILE
    now = {run.name: {"varied": run.varied, "words": run.words, "config": run.config} for run in plan.runs}
    recorded: dict[str, Any] = {"runs": {}}
    if path.exists():
        recorded = _recorded(path, plan)
    elif RunPaths(plan.workdir).holds_run:
        raise UserError(f"{plan.workdir} is no folder of a sweep, but of a run; give another --workdir")
    # What neither began nor waits in a queue of SLURM may have been a mistake.
    queued = read_object(jobs) if (jobs := plan.workdir / "slurm.json").exists() else {}
    runs = recorded["runs"].items()
    began = {name: run for name, run in runs if os.path.lexists(plan.workdir / name) or name in queued}
    # A folder that moved twice: configs of runs name the first place, words the second.
    places = {*map(Path, recorded.get("homes", [])), *homes(recorded["runs"].values()), plan.workdir.absolute()}
    for run in plan.runs:
        for before in _began(run, began):
            _check(run, before, places)
    record = {
        "config": plan.config,
        "sweep": plan.sweep,
        "shared": plan.shared,
        "homes": sorted(map(os.path.abspath, places)),
    }
    write_json(path, {**record, "runs": began | now})


def _recorded(path: Path, plan: Plan) -> dict[str, Any]:
    """The content of the file. Raises: UserError for the file of another sweep, and for a damaged one."""
    before = read_object(path)
    for name, now in (("config", plan.config), ("sweep", plan.sweep)):
        if Path(str(before.get(name))).name != Path(now).name:  # a config is the same in another folder
            raise UserError(
                f"{plan.workdir} holds another sweep (--{name}={before.get(name)}, not {now}); give another --workdir"
            )
    runs, places = before.get("runs", {}), before.get("homes", [])
    whole = isinstance(runs, dict) and isinstance(places, list) and all(isinstance(each, str) for each in places)
    if not whole or not all(isinstance(each, dict) and isinstance(each.get("config"), dict) for each in runs.values()):
        raise UserError(
            f"{path} is damaged: `runs` must have an object with a config for each run, and `homes` folders; restore the file, or give "
            "another --workdir"
        )
    return {**before, "runs": runs}


def _began(run: Run, recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """The configs with which a run began: the recorded one, and that of its own folder, whoever trained it there. None for a new run."""
    found = [recorded[run.name]["config"]] if run.name in recorded else []
    return [*found, *([read_object(run.paths.config_file)] if run.paths.config_file.is_file() else [])]


def _check(run: Run, before: dict[str, Any], places: set[Path]) -> None:
    """Raises: UserError if a run that began with the config `before`, of a sweep in one of `places`, cannot go on as `run`.

    A run that has finished is not trained or scored again. So what its result is of must stay, although it may change in a run that
    goes on. A key that `before` lacks came with a later version: the run began with its default value.
    """
    own = in_sweep(flatten(run.config), [run.folder.parent])
    if in_sweep(flatten(before), places) == own:
        return
    from one_layer.runs.changes import changes, may_change  # late: it imports JAX
    from one_layer.runs.settings import resolve, with_values

    try:
        began = in_sweep(flatten(resolve(without_idle(before)).raw), places)
    except UserError as error:
        raise UserError(f"the config with which {run.folder} began cannot be read: {error}") from None
    now = with_values(resolve(run.config), {name: own[name] for name in PLACES if name in own})
    finished = run.paths.finished
    refused = {
        name: values
        for name, values in changes(began, now).items()
        if not may_change(name, values, now) or (finished and changes_scores(name) and name not in PLACES_OF_TEXT)
    }
    if refused:
        differing = "; ".join(f"{name}: {there!r} there, {here!r} here" for name, (there, here) in refused.items())
        raise UserError(
            f"{run.folder.parent} holds this sweep with another config of {run.name}{', which has finished' if finished else ''} "
            f"({differing}); give another --workdir, or the same values"
        )
