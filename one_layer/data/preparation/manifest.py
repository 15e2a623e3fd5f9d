"""Writes the manifest of a prepared corpus: the checksum of every file, and the versions of the tools."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from one_layer.data.preparation.archives import sha256
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

TOOLS = ("sacremoses", "subword-nmt", "numpy")  # the version of each can change a prepared text
NAME = "manifest.json"


def tool_versions() -> dict[str, str]:
    """Returns the versions of Python and of `TOOLS`."""
    return {"python": platform.python_version()} | {tool: metadata.version(tool) for tool in TOOLS}


def checksums(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    """Returns, for each file name, the number of bytes and the SHA-256."""
    return {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths}


def describe_files(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    """Returns, for each file name, the number of lines (only "\\n" ends a line), the number of bytes and the SHA-256."""
    found: dict[str, dict[str, int | str]] = {}
    for path in paths:
        with path.open("rb") as file:
            lines = sum(1 for _ in file)
        found |= {name: {"lines": lines, **facts} for name, facts in checksums([path]).items()}
    return found


def refuse_finished(folder: Path) -> None:
    """Raises: UserError for a folder with a manifest, which would not fit to the files of another preparation until its end."""
    if (folder / NAME).exists():
        raise UserError(f"{folder} already holds a prepared corpus; delete it or give another --out")


def write_manifest(
    folder: Path, archives: Mapping[str, Any], outputs: Iterable[Path], facts: Mapping[str, Any]
) -> None:
    """Writes manifest.json into `folder`. `archives` are the `checksums` of the input, taken before it was read; `facts` holds the options
    and the results, ready for JSON.
    """
    content = {**facts, "archives": archives, "files": describe_files(outputs), "tools": tool_versions()}
    write_atomically(folder / NAME, json.dumps(content, indent=1) + "\n")
