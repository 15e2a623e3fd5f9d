"""Finds the project's configs from any folder, and lists the config's keys with their comments."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

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
    """Every key of configs/common.py with its comment and its value in `values` (nested plain values); by default, its default."""
    if values is None:
        values = defaults().to_dict()
    comments = _comments((folder() / "common.py").read_text("utf-8"))
    entries = []
    for section in dict.fromkeys(key.partition(".")[0] for key in comments):  # in the order of the file
        if section not in values:
            continue  # training says what such a config lacks
        held = values[section] if isinstance(values[section], dict) else {"": values[section]}
        order = list(comments)
        named = {f"{section}.{name}" if name else section: value for name, value in held.items()}
        for key in sorted(named, key=lambda key: order.index(key) if key in comments else len(order)):
            entries.append(f"--config.{key}={_plain(named[key])}")
            if comment := comments.get(key):
                entries.append(textwrap.indent(textwrap.fill(comment, 110), "    "))
    return "\n".join(entries)


def _comments(source: str) -> dict[str, str]:
    """The comment of each key: the lines of comment above its assignment, and what follows it on its line."""
    sections = re.findall(r"config\.(\w+) = _\1\(\)", source)
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.split("\n"):
        stripped = line.strip()
        if stripped.startswith("#"):
            above.append(stripped.removeprefix("#").strip())
            continue
        code, _, behind = line.partition("  # ")
        for section, name in re.findall(rf"\b(config|{'|'.join(sections)})\.(\w+)(?=,| = )", code):
            if section == "config" and name in sections:
                continue
            key = name if section == "config" else f"{section}.{name}"
            found.setdefault(key, " ".join([*above, behind.strip()]).strip())
        above = []
    return found


def _plain(value: Any) -> str:
    return "" if value is None else str(value)
