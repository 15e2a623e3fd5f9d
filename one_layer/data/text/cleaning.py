"""Which pairs of a raw parallel corpus are fit for training, and what is never part of a text."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class LengthFilter:
    """Moses' clean-corpus-n: sides of `least` to `most` tokens, the longer at most `ratio` times the shorter."""

    least: int = 1
    most: int = 175
    ratio: float = 1.5

    def reason(self, source: str, target: str) -> str:
        """Why a pair of tokenised lines is left out: "empty", "short", "long" or "ratio"; nothing if it is kept."""
        lengths = token_count(source), token_count(target)
        shorter, longer = min(lengths), max(lengths)
        if shorter == 0:
            return "empty"
        if shorter < self.least:
            return "short"
        if longer > self.most:
            return "long"
        return "ratio" if longer > self.ratio * shorter else ""


def token_count(line: str) -> int:
    """How many tokens a tokenised line has: what spaces separate, and no other white space."""
    return sum(1 for token in line.split(" ") if token)


def printable(line: str) -> str:
    """`line` with a space for every control, format, private and unassigned character (Unicode's categories C...).

    Moses' remove-non-printing-char. U+2028 and the like are separators, which tokenisation makes spaces.
    """
    if line.isprintable():
        return line
    return "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in line)
