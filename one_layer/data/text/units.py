"""The units of a language model's text: bytes, or pieces of byte-level BPE. They turn text into ids and back.

The tokens of a vocabulary are bytes as GPT-2 writes them (see `byte_level`).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Int, Int32, Integer

from one_layer.data.sources.plain_text import PlainText
from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.text import byte_level
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary

Ids = Int32[np.ndarray, " tokens"]

MASK = "<mask>"
_FIRST = len(SPECIALS)
_CHARACTERS = 2**18  # of the lines that are encoded at once, but for the last; an id in a list takes about fifty bytes


class Unit(ABC):
    """One unit with its vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @abstractmethod
    def encode(self, text: PlainText) -> Iterator[Ids]:
        """The ids of a text, in pieces. Line ends are text too."""

    def sentences(self, text: PlainText) -> Iterator[Ids]:
        """The ids of the lines of a text, in pieces: eos follows each line, in place of its line end. Empty lines are left out."""
        lines = (line.rstrip("\r\n") for line in text.lines())
        full = (line for line in lines if line.strip())
        for some in _together(full):
            yield np.concatenate([np.append(self.ids(line), np.int32(EOS)) for line in some])

    @abstractmethod
    def ids(self, text: str) -> Ids:
        """The ids of a short text."""

    def text(self, ids: Sequence[int] | Integer[np.ndarray, " tokens"]) -> str:
        """The text of ids. Special tokens have none; bytes that are not valid UTF-8 become U+FFFD."""
        tokens = (self.vocabulary.tokens[number] for number in np.asarray(ids).tolist() if number >= _FIRST)
        return byte_level.join("".join(token for token in tokens if token != MASK))

    @cached_property
    def sizes(self) -> Int[np.ndarray, " vocabulary"]:
        """The bytes of each id: 0 for special tokens, but 1 for an unknown one."""
        own = [0 if token == MASK else len(token) for token in self.vocabulary.tokens[_FIRST:]]
        return np.array([int(number == UNK) for number in range(_FIRST)] + own)


class Bytes(Unit):
    """A token is a byte; its id is the byte + 4."""

    def encode(self, text: PlainText) -> Iterator[Ids]:
        return (np.frombuffer(piece, np.uint8).astype(np.int32) + _FIRST for piece in text.pieces())

    def ids(self, text: str) -> Ids:
        return np.frombuffer(text.encode(), np.uint8).astype(np.int32) + np.int32(_FIRST)


class Pieces(Unit):
    """A token is a piece of byte-level BPE. Lines are split one by one, with their line ends."""

    def __init__(self, vocabulary: Vocabulary, merges: str) -> None:
        super().__init__(vocabulary)
        self._merges = merges

    def encode(self, text: PlainText) -> Iterator[Ids]:
        return map(self._of_lines, _together(text.lines()))

    def ids(self, text: str) -> Ids:
        return self._of_lines(re.findall(r"[^\n]*\n|[^\n]+", text))

    def _of_lines(self, lines: list[str]) -> Ids:
        found = [number for line in byte_level.numbers(self._merges, lines) for number in line]
        return self._table[np.array(found, np.int64)]

    @cached_property
    def _table(self) -> Int32[np.ndarray, " pieces"]:
        """The id of every piece of the merges."""
        known = {**self.vocabulary.text_ids, MASK: UNK}  # text cannot contain it
        return np.array([known.get(piece, UNK) for piece in byte_level.pieces(self._merges)], np.int32)


def vocabulary_of(merges: str | None) -> Vocabulary:
    """The vocabulary of the pieces of a merges.txt; without it, that of bytes."""
    return Vocabulary(SPECIALS + tuple(byte_level.pieces(merges or "")))


def of_bytes(vocabulary: Vocabulary) -> bool:
    """Whether this is the vocabulary of bytes, with or without `MASK`."""
    own = vocabulary_of(None).tokens
    return vocabulary.tokens in (own, (*own, MASK))


def _together(lines: Iterator[str]) -> Iterator[list[str]]:
    """Some lines at a time, however long they are."""
    some: list[str] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line)
        if size >= _CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some
