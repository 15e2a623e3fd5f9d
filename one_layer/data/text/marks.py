"""Letters with marks, which people type as one character or as several."""

import unicodedata
from collections.abc import Callable, Iterable

from one_layer.data.special_tokens import UNK


def composed(line: str, encode: Callable[[str], Iterable[int]]) -> str:
    """A line that somebody typed, with composed letters (Unicode's NFC) where `encode` knows more of it then, or needs fewer tokens.

    An `a` and a mark look like `ä`. Few texts are written so, and a model of another one reads them as nonsense.
    """
    if unicodedata.is_normalized("NFC", line):
        return line

    def cost(text: str) -> tuple[int, int]:
        ids = list(encode(text))
        return ids.count(UNK), len(ids)

    return min(line, unicodedata.normalize("NFC", line), key=cost)
