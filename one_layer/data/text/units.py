"""The units of a language model's text: bytes, characters, or pieces of byte-level BPE. They turn text into ids and back.

The tokens of a vocabulary are bytes as GPT-2 writes them (see `byte_level`), or characters. A character that a vocabulary's file cannot
hold, such as a space or a line end, is written as `U+0020`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
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
_NUMBERED = r"U\+(?!D[89A-F]..$)(10|[1-9A-F])?[0-9A-F]{4}"


class Unit(ABC):
    """One unit with its vocabulary. `measure` is what its scores count: bytes or characters."""

    measure = "byte"

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
        return byte_level.join("".join(_tokens(self.vocabulary, ids)))

    @cached_property
    def sizes(self) -> Int[np.ndarray, " vocabulary"]:
        """What each id counts for, in the unit's `measure`: 0 for special tokens, but 1 for an unknown one."""
        own = [0 if token == MASK else self._size(token) for token in self.vocabulary.tokens[_FIRST:]]
        return np.array([int(number == UNK) for number in range(_FIRST)] + own)

    def _size(self, token: str) -> int:
        return 1


class Bytes(Unit):
    """A token is a byte; its id is the byte + 4."""

    def encode(self, text: PlainText) -> Iterator[Ids]:
        return (np.frombuffer(piece, np.uint8).astype(np.int32) + _FIRST for piece in text.pieces())

    def ids(self, text: str) -> Ids:
        return np.frombuffer(text.encode(), np.uint8).astype(np.int32) + np.int32(_FIRST)


class Characters(Unit):
    """A token is a character (a code point of Unicode) of the training text; others are unknown."""

    measure = "character"

    def encode(self, text: PlainText) -> Iterator[Ids]:
        return (self.ids(piece) for piece in text.characters())

    def ids(self, text: str) -> Ids:
        return self._table[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)]

    def text(self, ids: Sequence[int] | Integer[np.ndarray, " tokens"]) -> str:
        return "".join(map(_character, _tokens(self.vocabulary, ids)))

    def written(self, number: int) -> str:
        """The character with the id `number`; of a special token, its name."""
        token = self.vocabulary.tokens[number]
        return token if number < _FIRST else _character(token)

    @cached_property
    def _table(self) -> Int32[np.ndarray, " codes"]:
        table = np.full(0x110000, UNK, np.int32)
        for number, token in enumerate(self.vocabulary.tokens[_FIRST:], _FIRST):
            if len(character := _character(token)) == 1:
                table[ord(character)] = number
        return table


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
        known = {token: number for number, token in enumerate(self.vocabulary.tokens) if number >= _FIRST}
        known.pop(MASK, None)  # text cannot contain it
        return np.array([known.get(piece, UNK) for piece in byte_level.pieces(self._merges)], np.int32)

    def _size(self, token: str) -> int:
        return len(token)


def unit(name: str, vocabulary: Vocabulary, merges: str | None) -> Unit:
    """The unit `bytes`, `characters` or `bpe`, with its vocabulary and, for the last, the text of its merges.txt."""
    if name == "bpe":
        return Pieces(vocabulary, merges or "")
    return Characters(vocabulary) if name == "characters" else Bytes(vocabulary)


def vocabulary_of(name: str, text: PlainText, merges: str | None) -> Vocabulary:
    """The vocabulary of a unit. Only that of characters depends on the training text, which is read for it."""
    if name == "characters":
        counts: Counter[str] = Counter()
        for piece in text.characters():
            counts.update(piece)
        return Vocabulary.of_counts({_token(each): count for each, count in counts.items()})
    return Vocabulary(SPECIALS + tuple(byte_level.pieces(merges or "")))


def of_bytes(vocabulary: Vocabulary) -> bool:
    """Whether this is the vocabulary of bytes, with or without `MASK`."""
    own = SPECIALS + tuple(byte_level.pieces(""))
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


def _tokens(vocabulary: Vocabulary, ids: Sequence[int] | Integer[np.ndarray, " tokens"]) -> list[str]:
    tokens = (vocabulary.tokens[number] for number in np.asarray(ids).tolist() if number >= _FIRST)
    return [token for token in tokens if token != MASK]


def _token(character: str) -> str:
    """The token of a character."""
    return character if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"


def _character(token: str) -> str:
    # A stranger's vocabulary may name what is no character: numbers beyond the last, and halves of surrogate pairs.
    return chr(int(token[2:], 16)) if re.fullmatch(_NUMBERED, token) else token
