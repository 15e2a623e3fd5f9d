"""What a run needs: the run that it begins with, its teacher, and the run or the files whose embeddings it has; and what they cost.

A run's own seconds and operations do not have those of its sources. `result.json` keeps them beside its own, because the folders of the
sources may be gone when somebody compares costs. This module needs no JAX.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from one_layer.runs.paths import RunPaths, read_object
from one_layer.runs.records import flatten

# By key.
WORDS = {"train.init_from": "begins with", "data.teacher": "taught by", "model.embedding_path": "embeddings of"}
_COSTS = ("train_seconds", "train_flops")


def sources(config: Mapping[str, Any], seen: tuple[Path, ...] = ()) -> list[dict[str, Any]]:
    """The sources of a run with this flat config: the `key` that names one, its `path`, `train_seconds` and `train_flops`.

    The costs are those of the source and of all its own sources, each once; None where a result of one of them is not there, or does not
    say so. `parts` has them one by one, by path: two sources may have one in common.
    A file of embeddings in the folder of a run has the cost of that run; what other programs made has none that is known.
    Raises: UserError for a damaged result.
    """
    named = {key: str(config.get(key) or "") for key in WORDS}
    return [{"key": key, "path": path, **_costs(Path(path), seen)} for key, path in named.items() if path]


def parts(needed: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """The costs of all runs that `needed`, some sources, stand for, by path. Results of earlier versions do not tell them apart."""
    found: dict[str, dict[str, float | None]] = {}
    for each in needed:
        found |= each.get("parts") or {each["path"]: {name: each.get(name) for name in _COSTS}}
    return found


def _costs(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    folder = (path if path.is_dir() else path.parent).resolve()  # a ticket lies in the folder of its run
    file = RunPaths(folder).result_file
    if folder in seen or not file.is_file():
        return dict.fromkeys(_COSTS)
    result = read_object(file)
    own = result.get("sources")
    own = sources(flatten(result.get("config", {})), (*seen, folder)) if own is None else own
    every = {str(path): {name: result.get(name) for name in _COSTS}, **parts(own)}
    found: dict[str, list[Any]] = {name: [each[name] for each in every.values()] for name in _COSTS}
    return {**{name: None if None in costs else sum(costs) for name, costs in found.items()}, "parts": every}
