"""Writes the pairs of a prepared corpus, and its manifest: the checksum of every file, and the versions of the tools."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from one_layer.data.preparation.archives import sha256
from one_layer.system.errors import UserError
from one_layer.system.files import replacing, write_atomically

log = logging.getLogger(__name__)

TOOLS = ("sacremoses", "subword-nmt", "numpy")  # the version of each can change a prepared text
NAME = "manifest.json"


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


def write_pairs(folder: Path, name: str, languages: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> list[Path]:
    """Writes {name}.{language} into `folder`, pair by pair, and returns the paths."""
    paths = [folder / f"{name}.{language}" for language in languages]
    with replacing(paths[0]) as source, replacing(paths[1]) as target:
        for one, other in pairs:
            source.write(f"{one}\n".encode())
            target.write(f"{other}\n".encode())
    return paths


def write_manifest(
    folder: Path, archives: Mapping[str, Any], outputs: Iterable[Path], pairs: Mapping[str, int], **facts: Any
) -> None:
    """Writes manifest.json into `folder`, and logs the numbers of `pairs`.

    `archives` are the `checksums` of the input, taken before it was read; `facts` holds the options and other results, ready for JSON.
    """
    content = {**facts, "pairs": pairs, "archives": archives, "files": describe_files(outputs)}
    content["tools"] = {"python": platform.python_version()} | {tool: metadata.version(tool) for tool in TOOLS}
    write_atomically(folder / NAME, json.dumps(content, indent=1) + "\n")
    log.info("%s: %s", folder, ", ".join(f"{name} {count:,}" for name, count in pairs.items()))
