"""Text for people and spreadsheets: tables as lines for a terminal and as CSV, and words without the marks of their pieces."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[str]], right: bool = False) -> str:
    """The rows, the first of which has the names of the columns, as lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place = ">" if right else "<"
    lines = ("  ".join(f"{cell:{place}{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """The text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def joined(line: str) -> str:
    """The line without the marks `@@` of subword-nmt, where they are between the pieces of a word."""
    return re.sub(r"(?<=\S)@@( |$)", "", line)


def megabytes(count: float) -> str:
    """A number of bytes with three digits and a unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:g} B"
