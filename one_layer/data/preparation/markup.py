"""Extracts the text from the files of IWSLT and WMT. Their mark-up fills whole lines or encloses a line."""

from __future__ import annotations

import re

from one_layer.system.errors import UserError

_LEFT_OUT = ("<url>", "<talkid>", "<keywords>")
_AROUND = re.compile(r"</?(?:title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*')
_SEGMENT_END = re.compile(r"\s*</seg>\s*")


def talk_lines(lines: list[str]) -> list[str]:
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
