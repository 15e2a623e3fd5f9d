"""Cleaning of raw parallel text: which pairs are suitable for training, and which characters are removed."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class LengthFilter:
    """The filter of Moses' clean-corpus-n.

    It keeps a pair if both sides have 1 to `most` tokens and the longer side has at most 1.5 times as many as the shorter.
    """

    most: int

    def reason(self, source: str, target: str) -> str:
        """Returns why a pair of tokenised lines is left out ("empty", "long" or "ratio"), or "" if it is kept."""
        lengths = token_count(source), token_count(target)
        shorter, longer = min(lengths), max(lengths)
        if shorter == 0:
            return "empty"
        if longer > self.most:
            return "long"
        return "ratio" if longer > 1.5 * shorter else ""


def token_count(line: str) -> int:
    """Returns the number of tokens of a tokenised line. Only the space separates tokens, no other white space."""
    return sum(1 for token in line.split(" ") if token)


def printable(line: str) -> str:
    """Replaces every control, format, private and unassigned character (Unicode categories C*) of `line` by a space.

    This is Moses' remove-non-printing-char. It keeps separators such as U+2028, which tokenisation turns into spaces.
    """
    if line.isprintable():
        return line
    return "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in line)
