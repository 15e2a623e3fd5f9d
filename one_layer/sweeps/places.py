"""Where the runs of a sweep lie, and what their configs say of it: a sweep stays the same when its folder moves or is named otherwise."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SWEEP = "{sweep}"  # stands for the folder of the sweep
# Keys whose values may be folders of other runs, or files in them.
PLACES = (
    "model.embedding_path",
    "model.embedding_vocabulary",
    "train.init_from",
    "data.teacher",
    "data.translations",
    "data.bpe_codes",
    "data.vocabulary",
)


def homes(runs: Iterable[dict[str, Any]]) -> set[Path]:
    """The folders in which the recorded runs of a sweep lay when they were planned, perhaps on another machine."""
    words = [word for run in runs for word in run.get("words", [])]
    return {Path(word.partition("=")[2]).parent for word in words if word.startswith("--workdir=")}


def in_sweep(config: Mapping[str, Any], folders: Iterable[Path]) -> dict[str, Any]:
    """A config by dotted names, in which paths below one of the sweep's `folders` begin with `{sweep}`."""
    found = dict(config)
    for key in PLACES:
        path = Path(os.path.abspath(config.get(key) or ""))
        inside = [path.relative_to(home) for home in map(os.path.abspath, folders) if path.is_relative_to(home)]
        if config.get(key) and inside:
            found[key] = f"{SWEEP}/{inside[0]}"
    return found
