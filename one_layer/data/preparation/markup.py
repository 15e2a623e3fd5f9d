"""The text of the files of IWSLT and WMT, whose mark-up fills whole lines or encloses a line; and which pairs are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import split_tokens
from one_layer.system.errors import UserError

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
