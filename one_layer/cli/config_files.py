"""Finds the project's configs from any folder, and lists the config's keys."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from one_layer.runs.records import flatten

_PACKAGE = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """The folder `configs`: in an installed package it is inside it, in a clone of the repository beside it."""
    inside = _PACKAGE / "configs"
    return inside if inside.is_dir() else _PACKAGE.parent / "configs"


def make_importable() -> None:
    """Makes `configs` a package that configs can import from, wherever it lies, unless it is one already."""
    if "configs" not in sys.modules:
        place = folder()
        spec = importlib.util.spec_from_file_location(
            "configs", place / "__init__.py", submodule_search_locations=[str(place)]
        )
        assert spec is not None
        sys.modules["configs"] = importlib.util.module_from_spec(spec)


def resolved(argument: str) -> str:
    """A word of the command line; where it names a config `configs/NAME.py` that the current folder lacks, with the project's own."""
    flag, path = re.fullmatch(r"(--?config=)?(.*)", argument, re.DOTALL).groups("")  # type: ignore[union-attr]
    name, colon, rest = path.partition(":")
    if not re.fullmatch(r"configs/\w+\.py", name) or Path(name).exists():
        return argument
    own = folder() / Path(name).name
    return f"{flag}{own}{colon}{rest}" if own.is_file() else argument


def defaults() -> ConfigDict:
    """The config with the default of every key."""
    return importlib.import_module("configs.common").get_config()


def keys(values: dict[str, Any] | None = None) -> str:
    """The keys with their `values` (nested plain values); by default configs/common.py, where each has its default and a comment."""
    if values is None:
        return (folder() / "common.py").read_text("utf-8")
    return "\n".join(f"--config.{key}={'' if value is None else value}" for key, value in flatten(values).items())
