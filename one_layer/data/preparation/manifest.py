"""What a prepared corpus is made of: every file's checksum, and the tools that made it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from one_layer.data.preparation.archives import sha256
from one_layer.files import write_atomically

TOOLS = ("sacremoses", "subword-nmt", "numpy")  # those whose version can change a prepared text
NAME = "manifest.json"


def tool_versions() -> dict[str, str]:
    """The versions of Python and of `TOOLS`."""
    return {"python": platform.python_version()} | {tool: metadata.version(tool) for tool in TOOLS}


def describe_files(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    """Lines (what "\\n" ends), bytes and SHA-256 of every file, by its name."""
    found: dict[str, dict[str, int | str]] = {}
    for path in paths:
        with path.open("rb") as file:
            lines = sum(1 for _ in file)
        found[path.name] = {"lines": lines, "bytes": path.stat().st_size, "sha256": sha256(path)}
    return found


def write_manifest(folder: Path, archives: Iterable[Path], outputs: Iterable[Path], facts: Mapping[str, Any]) -> None:
    """Writes manifest.json into `folder`; `facts`: what was asked for and what came of it, ready for JSON."""
    sources = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in archives}
    content = {**facts, "archives": sources, "files": describe_files(outputs), "tools": tool_versions()}
    write_atomically(folder / NAME, json.dumps(content, indent=1) + "\n")
