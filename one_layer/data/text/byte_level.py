"""Byte-level byte pair encoding, as GPT-2 and RoBERTa have it: every text is pieces of a vocabulary that starts from 256 bytes.

Radford et al. 2019 ("Language Models are Unsupervised Multitask Learners", section 2.2). Each byte of UTF-8 has a letter that can
be printed, the space's is `Ġ`; words are cut as GPT-2 cuts them, with the space before them, and merged by the library tokenizers,
which is imported when first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from one_layer.errors import UserError


def _letters() -> dict[int, str]:
    """GPT-2's letter of every byte: its Latin-1 letter where that can be seen, else one from U+0100 on, in the order of bytes."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = {byte: chr(0x100 + place) for place, byte in enumerate(byte for byte in range(256) if byte not in seen)}
    return {byte: hidden.get(byte, chr(byte)) for byte in range(256)}


LETTERS = _letters()
_BYTES = {letter: bytes([byte]) for byte, letter in LETTERS.items()}


def split(merges: str, lines: Iterable[str]) -> Iterator[str]:
    """The pieces of each line, spaces between; `merges` is the text of a merges.txt. A line's first word has no `Ġ` before it."""
    tokenizer = _tokenizer(merges)
    return (" ".join(tokenizer.encode(line).tokens) for line in lines)


def join(pieces: str) -> str:
    """The text of a line of pieces. Bytes that are not UTF-8, as a model may write them, become U+FFFD."""
    content = b"".join(_BYTES.get(letter) or letter.encode() for letter in pieces if letter != " ")
    return content.decode("utf-8", "replace")


def check_merges(merges: str, name: str) -> None:
    """Raises UserError, naming the line, unless every line is two symbols, each a byte's letter or what some line makes."""
    pairs = _pairs(merges, name)
    made = {*LETTERS.values(), *(left + right for _, left, right in pairs)}
    for number, *symbols in pairs:
        for symbol in symbols:
            if symbol not in made:
                raise UserError(
                    f"{name}, line {number}: {symbol!r:.200} is neither a byte nor made by any line; is this GPT-2's or "
                    "RoBERTa's merges.txt, whole and as it was published?"
                )


def _pairs(merges: str, name: str) -> list[tuple[int, str, str]]:
    """(number of the line, left, right) of every merge."""
    lines = merges.removesuffix("\n").split("\n")
    first = 1 if lines[0].startswith("#version:") else 0
    if not any(lines[first:]):
        raise UserError(f"{name}: no merges; a merges.txt as GPT-2 and RoBERTa have it is needed")
    pairs = []
    for number, line in enumerate(lines[first:], start=first + 1):
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise UserError(f"{name}, line {number}: {line!r:.200} is not two symbols with a space between")
        pairs.append((number, left, right))
    return pairs


@lru_cache(maxsize=8)
def _tokenizer(merges: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    pairs = [(left, right) for _, left, right in _pairs(merges, "the merges")]
    pieces = dict.fromkeys([*LETTERS.values(), *(left + right for left, right in pairs)])
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer
