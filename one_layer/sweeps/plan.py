"""The runs of a sweep: their folders and configs, checked before anything starts. Imports no JAX."""

import hashlib
import inspect
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from one_layer.cli.config_files import called, loaded, plain_config
from one_layer.cli.overrides import override
from one_layer.runs.paths import RunPaths
from one_layer.runs.records import flatten, refuse_unknown
from one_layer.sweeps.places import PLACES, SWEEP
from one_layer.system.errors import UserError

ARGUMENT = "config"  # the key of overrides that stands for the argument of get_config; see configs/sweeps.py
DIRECTION = "direction"  # another such key: `forth` is the direction of the text, and `back` the other one
ROOT = Path(__file__).resolve().parents[2]  # the folder that the package lies in
_PLAIN_NAME = "default"  # of a run that varies nothing
_LONGEST = 120  # characters of a folder's name
_MOST_BYTES = 240  # a file system takes 255


@dataclass(frozen=True)
class Run:
    """One run of a sweep: its folder, what the sweep varies (by dotted names), its whole config, and its command line."""

    name: str
    folder: Path
    varied: dict[str, Any]
    config: dict[str, Any]
    words: list[str]
    needs: tuple[str, ...] = ()  # runs whose folders it reads

    @property
    def paths(self) -> RunPaths:
        """The files of the run."""
        return RunPaths(self.folder)


@dataclass(frozen=True)
class Plan:
    """A sweep: `--config`, its name, the overrides that all its runs share, its folder and its runs."""

    config: str
    sweep: str
    shared: dict[str, Any]
    workdir: Path
    runs: list[Run]


def make(config: str, sweep: str, shared_words: list[str], workdir: Path) -> Plan:
    """Plans the sweep `sweep` (empty: the config's default one) of `config`, which is FILE or FILE:ARGUMENT.

    `shared_words` are `--config.a.b=VALUE`, for all runs. Raises: UserError for a config or a sweep that does not exist, for unknown
    keys and values of another type, for two runs with the same folder, and for runs that need each other.
    """
    file, _, argument = config.partition(":")
    module = loaded(file, "get_config", "sweep")
    listed = _listed(module, file, sweep)
    first = listed[0].get(ARGUMENT, "") or argument  # get_config may need one
    shared = override(plain_config(module, file, first), shared_words)
    runs = []
    for overrides in listed:
        if twice := sorted(shared.keys() & overrides.keys()):
            raise UserError(
                f"--config.{twice[0]} is given for all runs, but the sweep varies it; leave this option out"
            )
        own = overrides.get(ARGUMENT, "")
        if own and argument:
            raise UserError(
                f"--config={config}: the runs of this sweep have arguments of their own; leave :{argument} out"
            )
        runs.append(_run(module, file, own or argument, overrides, shared, workdir))
    _check_distinct("folder", runs, [run.name for run in runs])
    return Plan(config, sweep or _default_sweep(module), shared, workdir, _linked(runs, workdir))


def _listed(module: ModuleType, file: str, sweep: str) -> list[dict[str, Any]]:
    def listed(*name: str) -> list[Any]:
        found = module.sweep(*name)
        return list(found) if isinstance(found, Iterable) else [found]

    runs = called(file, listed, sweep)
    if not runs:
        raise UserError(f"the sweep {sweep or 'of ' + file} has no runs")
    for run in runs:
        if not (isinstance(run, dict) and all(isinstance(key, str) for key in run)):
            raise UserError(
                f"the sweep {sweep or 'of ' + file} holds {run!r:.100}, which is no run: a sweep is a list of overrides; "
                "vary, product and chain of configs/sweeps.py make and join such lists"
            )
        if not isinstance(run.get(ARGUMENT, ""), str):
            raise UserError(
                f"the sweep {sweep or 'of ' + file} gives {ARGUMENT} the value {run[ARGUMENT]!r:.100}, which is no text; it is the "
                "argument of get_config, for instance dense"
            )
    # A sweep may vary a key over an array.
    return [{key: each.item() if isinstance(each, np.generic) else each for key, each in run.items()} for run in runs]


def _default_sweep(module: ModuleType) -> str:
    parameters = inspect.signature(module.sweep).parameters.values()
    return str(next((each.default for each in parameters), ""))


def _run(
    module: ModuleType, file: str, argument: str, overrides: dict[str, Any], shared: dict[str, Any], workdir: Path
) -> Run:
    plain = plain_config(module, file, argument)
    varied = {key: value for key, value in overrides.items() if key not in (ARGUMENT, DIRECTION)}
    defaults = flatten(plain.to_dict())
    refuse_unknown("", varied, set(defaults))
    for key, value in varied.items():
        if value is None and defaults[key] is not None:
            raise UserError(f"the sweep gives {key} the value None, but the config has {defaults[key]!r}; give a value")
    name = folder_name({key: value for key, value in overrides.items() if key != DIRECTION}, defaults)
    own = {key: str(value).replace(SWEEP, str(workdir)) for key, value in varied.items() if value is not None}
    given = shared | own
    if direction := overrides.get(DIRECTION):
        given |= _turned(defaults | given, direction)
        sides = "-".join((defaults | given)[f"data.{side}_language"] for side in ("source", "target"))
        name = _safe(sides) if name == _PLAIN_NAME else f"{_safe(sides)},{name}"
    override(plain, words := [f"--config.{key}={value}" for key, value in given.items()])
    command = [f"--config={file}:{argument}" if argument else f"--config={file}", f"--workdir={workdir / name}", *words]
    return Run(name, workdir / name, overrides, plain.to_dict(), command)


def _turned(config: dict[str, Any], direction: str) -> dict[str, str]:
    """The keys with which a run reads the same text in the other `direction`; none for `forth`."""
    source, target = config["data.source_language"], config["data.target_language"]
    if direction not in ("forth", "back"):
        raise UserError(f"the sweep gives {DIRECTION} the value {direction!r:.100}; it is forth or back")
    if not (source and target) or source == target:
        raise UserError(
            f"this sweep trains both directions, from data.source_language={source!r:.100} to "
            f"data.target_language={target!r:.100} and back; give two languages, for instance "
            "--config.data.source_language=de --config.data.target_language=en"
        )
    if direction == "forth":
        return {}
    columns = ";".join(",".join(reversed(group.split(","))) for group in config["data.columns"].split(";"))
    sides = {"data.source_language": target, "data.target_language": source}
    return sides | ({"data.columns": columns} if columns else {})


def folder_name(overrides: dict[str, Any], config: dict[str, Any]) -> str:
    """The name of a run's folder: the config's argument, and `key=value` for each override that differs from `config`.

    `config` has the values that the argument alone gives, by dotted names. A name depends on nothing else, so it stays the same when
    a sweep grows by other runs or by other keys. Values that hold the sweep's folder are left out.
    """
    parts = []
    for key, value in overrides.items():
        if key == ARGUMENT or (isinstance(value, str) and SWEEP in value) or config[key] == value:
            continue
        parts.append(f"{_short(key, config)}={value}")
    name = ",".join([*([overrides[ARGUMENT]] if overrides.get(ARGUMENT) else []), *sorted(parts)]) or _PLAIN_NAME
    return _safe(name)


def _safe(name: str) -> str:
    """A name that a folder can have; one that had to be changed gets a digest, so that two of them stay apart."""
    safe = re.sub(r"[^\w.+=,-]+", "-", name)
    if safe == name and len(name) <= _LONGEST and len(name.encode()) <= _MOST_BYTES:
        return name
    cut = safe[:_LONGEST].encode()[:_MOST_BYTES].decode("utf-8", "ignore")
    return f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _short(key: str, config: Iterable[str]) -> str:
    """The last part of a dotted key, or the whole key if other sections have a key of that name."""
    last = key.rpartition(".")[2]
    return last if sum(each.rpartition(".")[2] == last for each in config) == 1 or "." not in key else key


def check_configs(runs: list[Run], of_masks: Iterable[str]) -> None:
    """Raises: UserError if two runs have the same config. The configs are resolved ones: others may differ and mean the same.

    In dense models, the keys `of_masks` may differ and mean nothing.
    """
    configs = [flatten(run.config) for run in runs]
    _check_distinct("config", runs, configs)
    for each in configs:
        if each["model.weights"] == "dense":
            each.update(dict.fromkeys(of_masks))
    _check_distinct("config, because a dense model has no masks", runs, configs)


def _check_distinct(what: str, runs: list[Run], marks: Sequence[Any]) -> None:
    """Raises: UserError if two runs have the same mark, which stands for their `what`."""
    for number, mark in enumerate(marks):
        if (first := marks.index(mark)) < number:
            same = f"{runs[first].varied} and {runs[number].varied}"
            raise UserError(f"two runs of the sweep have the same {what}: {same}; leave one of them out")


def _linked(runs: list[Run], workdir: Path) -> list[Run]:
    """The runs, each with the names of those whose folders it reads, or files in them.

    Raises: UserError if a run needs itself, or a place in the sweep's folder where nothing is and no run will be, or if runs need each
    other.
    """
    folders = {run.name: Path(os.path.abspath(run.folder)) for run in runs}
    needs = {}
    for run in runs:
        config = flatten(run.config)
        if config.get("train.model_of"):  # the plan has the keys of all models, before the other run is there
            raise UserError(
                "a sweep has no use for train.model_of; give train.init_from, and the keys of model of that run"
            )
        places = [Path(os.path.abspath(config[key])) for key in PLACES if config.get(key)]
        needs[run.name] = tuple(name for name in folders if any(each.is_relative_to(folders[name]) for each in places))
        for each in places:
            known = each.exists() or any(each.is_relative_to(folder) for folder in folders.values())
            if each.is_relative_to(os.path.abspath(workdir)) and not known and "{language}" not in str(each):
                raise UserError(
                    f"the run {run.name} reads {each}, but this sweep trains no run there, and nothing is there yet; its runs are "
                    f"{', '.join(folders):.300}"
                )
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        first, *others = reversed(error.args[1])
        raise UserError(
            f"the run {first} needs the run {', which needs the run '.join(others)}, so it could never begin; its paths "
            f"(train.init_from, model.embedding_path) must name runs that can be trained before it, for instance outside of "
            f"{folders[first].parent}"
        ) from None
    return [replace(run, needs=needs[run.name]) for run in runs]


def program(root: Path = ROOT) -> list[str]:
    """The words with which a command of this program begins: main.py of a clone of the repository, or the installed package."""
    main = root / "main.py"
    return [sys.executable, *([str(main)] if main.is_file() else ["-m", "one_layer"])]
