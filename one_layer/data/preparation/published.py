"""What preparations of published corpora have in common: the text of their files, which pairs are left out, what is written, the manifest.

The mark-up of the files of IWSLT and WMT fills whole lines or encloses a line. The manifest has the checksum of every file, and the
versions of the tools.
"""

import logging
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from one_layer.data.preparation.archives import sha256
from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import split_tokens
from one_layer.system.errors import UserError
from one_layer.system.files import replacing, write_json

log = logging.getLogger(__name__)

TOOLS = ("sacremoses", "subword-nmt", "numpy")  # the version of each can change a prepared text
NAME = "manifest.json"
_LEFT_OUT = ("<url>", "<talkid>", "<keywords>")
_AROUND = re.compile(r"</?(?:title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*')
_SEGMENT_END = re.compile(r"\s*</seg>\s*")


def talk_lines(lines: list[str], name: str) -> list[str]:
    """Returns the text of IWSLT's train.tags files: removes tags, and the lines with a talk's URL, number or keywords.

    Titles, descriptions and lines about a speaker stay, as in the literature.
    """
    return [_AROUND.sub("", line) for line in lines if not any(tag in line for tag in _LEFT_OUT)]


def segments(lines: list[str], name: str) -> list[str]:
    """Returns the segments of a test set in XML or SGML, which has one segment per line; errors call the file `name`.

    Entities stay unchanged. A right single quotation mark becomes an apostrophe, as in the test sets of the literature.
    Raises: UserError if there is no segment, or if a segment does not end on its line.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        if "<seg id" not in line:
            continue
        if "</seg>" not in line:
            raise UserError(f"{name}, line {number}: the segment does not end on this line; give the published file")
        found.append(_SEGMENT_END.sub("", _SEGMENT.sub("", line)).replace("\u2019", "'"))
    if not found:
        raise UserError(f'{name} has no line with <seg id="...">; give a test set in XML or SGML')
    return found


def both_sides(paths: Sequence[Path], text: Callable[[list[str], str], list[str]]) -> tuple[list[str], list[str]]:
    """The `text` of the files of both languages. Raises: UserError if they have different numbers of lines of text."""
    source, target = (text(read_lines(path), str(path)) for path in paths)
    if len(source) != len(target):
        raise UserError(
            f"{paths[0]} has {len(source):,} lines of text, but {paths[1]} has {len(target):,}; "
            "both must have the same number; give the published archive"
        )
    return source, target


def why_left_out(source: str, target: str, most: int) -> str:
    """Why Moses' clean-corpus-n leaves out a pair of tokenised lines ("empty", "long" or "ratio"), or "" if it keeps it.

    It keeps a pair if both sides have 1 to `most` tokens and the longer side has at most 1.5 times as many as the shorter.
    """
    shorter, longer = sorted(len(split_tokens(line)) for line in (source, target))
    if shorter == 0:
        return "empty"
    if longer > most:
        return "long"
    return "ratio" if longer > 1.5 * shorter else ""


def checksums(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    """Returns, for each file name, the number of bytes and the SHA-256."""
    return {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths}


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
    folder: Path, archives: Mapping[str, Any], outputs: Sequence[Path], pairs: Mapping[str, int], **facts: Any
) -> None:
    """Writes manifest.json into `folder`, and logs the numbers of `pairs`.

    `archives` are the `checksums` of the input, taken before it was read; `facts` holds the options and other results, ready for JSON.
    """
    files = checksums(outputs)
    for path in outputs:
        with path.open("rb") as file:
            files[path.name]["lines"] = sum(1 for _ in file)  # only "\n" ends a line
    content = {**facts, "pairs": pairs, "archives": archives, "files": files}
    content["tools"] = {"python": platform.python_version()} | {tool: metadata.version(tool) for tool in TOOLS}
    write_json(folder / NAME, content)
    log.info("%s: %s", folder, ", ".join(f"{name} {count:,}" for name, count in pairs.items()))
