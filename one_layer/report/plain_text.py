"""Text for people: tables as lines for a terminal, and words without the marks of their pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: bool = False) -> str:
    """The rows, the first of which has the names of the columns, as lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place = ">" if right else "<"
    lines = ("  ".join(f"{cell:{place}{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def joined(line: str) -> str:
    """The line without the marks `@@` of subword-nmt, where they are between the pieces of a word."""
    return re.sub(r"(?<=\S)@@( |$)", "", line)


def megabytes(count: float) -> str:
    """A number of bytes with three digits and a unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:g} B"
