"""The text in the files of IWSLT and WMT, whose mark-up stands in lines of its own or around a line."""

from __future__ import annotations

import re

from one_layer.errors import UserError

_LEFT_OUT = ("<url>", "<talkid>", "<keywords>")
_AROUND = re.compile(r"</?(?:title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*')
_SEGMENT_END = re.compile(r"\s*</seg>\s*")


def talk_lines(lines: list[str]) -> list[str]:
    """The text of IWSLT's train.tags files: all lines but addresses, numbers and keywords of talks, without tags.

    Titles and descriptions are text, and so is a line about a speaker, where there is one: the literature keeps them.
    """
    return [_AROUND.sub("", line) for line in lines if not any(tag in line for tag in _LEFT_OUT)]


def segments(lines: list[str], name: str) -> list[str]:
    """The text of a test set in XML or SGML, one segment a line of the file `name`; entities stay as they are written.

    A right single quotation mark becomes an apostrophe, as in the test sets of the literature.
    Raises UserError where there is no segment, and where one does not end in its line.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        if "<seg id" not in line:
            continue
        if "</seg>" not in line:
            raise UserError(f"{name}, line {number}: the segment does not end in its line; is this the published file?")
        found.append(_SEGMENT_END.sub("", _SEGMENT.sub("", line)).replace("\u2019", "'"))
    if not found:
        raise UserError(f'{name} has no line with <seg id="...">; a test set as XML or SGML is needed')
    return found
