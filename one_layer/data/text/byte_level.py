"""Byte-level byte pair encoding, as in GPT-2 and RoBERTa: the vocabulary starts from the 256 bytes, so it covers every text.

Source: Radford et al. 2019 ("Language Models are Unsupervised Multitask Learners", section 2.2). Each byte of UTF-8 is written as
a printable letter; the space is `Ġ`. Text is split into words as GPT-2 does it: each word keeps the space before it. The library
tokenizers applies the merges; it is imported at first use.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from one_layer.system.errors import UserError


def _letters() -> dict[int, str]:
    """Returns GPT-2's letter for every byte: the visible Latin-1 letter if there is one, otherwise the next from U+0100 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = {byte: chr(0x100 + place) for place, byte in enumerate(byte for byte in range(256) if byte not in seen)}
    return {byte: hidden.get(byte, chr(byte)) for byte in range(256)}


LETTERS = _letters()
# Bytes: learning takes time that grows with the square of a word's length, and a genome is one word.
_LONGEST_WORD = 4096
_BYTES = {letter: bytes([byte]) for byte, letter in LETTERS.items()}


def splitter(merges: str) -> Callable[[str], str]:
    """The function that splits a line into pieces with spaces between them; `merges` is the text of a merges.txt.

    The first word of a line gets no `Ġ`.
    """
    tokenizer = _tokenizer(merges)
    return lambda line: " ".join(tokenizer.encode(line).tokens)


def pieces(merges: str) -> list[str]:
    """Every piece that the merges can make: the 256 bytes, in their order, and then the merges' results."""
    pairs = pairs_of(merges, "the merges") if merges else []
    return list(dict.fromkeys([*LETTERS.values(), *(left + right for _, left, right in pairs)]))


def check_pieces(made: Iterable[str], tokens: Iterable[str], where: str) -> None:
    """Checks that `tokens` has every piece that merges make: one that it lacks would be unknown. Raises: UserError that begins `where`."""
    known = frozenset(tokens)
    if lost := next((piece for piece in made if piece not in known), None):
        raise UserError(
            f"{where}: the merges make {lost!r}, which the vocabulary lacks; give the files of one tokenizer"
        )


def numbers(merges: str, lines: Iterable[str]) -> Iterator[list[int]]:
    """The pieces of each line, as their numbers in `pieces(merges)`."""
    tokenizer = _tokenizer(merges)
    return (tokenizer.encode(line).ids for line in lines)


def learn(lines: Iterable[str], merges: int) -> str:
    """Learns up to `merges` merges on `lines`, which keep their line ends. Returns the text of a merges.txt.

    Longer words than `_LONGEST_WORD` bytes are learned in parts. The memory that it takes grows with the number of different words.
    Raises: UserError if nothing can be merged.
    """
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words, parts = pre_tokenizers.ByteLevel(add_prefix_space=False), Regex(f".{{{_LONGEST_WORD}}}")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Split(parts, "isolated")])
    trainer = trainers.BpeTrainer(
        vocab_size=len(LETTERS) + merges, min_frequency=2, initial_alphabet=list(LETTERS.values()), show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    learned = json.loads(tokenizer.to_str())["model"]["merges"]
    if not learned:
        raise UserError(
            f"data.bpe_merges={merges}, but the training text has no two symbols to merge; give more text, or data.unit=bytes"
        )
    return "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in learned)


def join(pieces: str) -> str:
    """Returns the text of a line of pieces. Bytes that are not valid UTF-8 (a model may generate them) become U+FFFD."""
    content = b"".join(_BYTES.get(letter) or letter.encode() for letter in pieces if letter != " ")
    return content.decode("utf-8", "replace")


def check_merges(merges: str, name: str, bytes_only: bool) -> None:
    """Checks that every line is two symbols, and that each symbol is a byte's letter (or any one character, without `bytes_only`) or the
    result of some line.

    Raises: UserError that names the first line for which this does not hold.
    """
    pairs = pairs_of(merges, name)
    made = {*LETTERS.values(), *(left + right for _, left, right in pairs)}
    basic = "byte" if bytes_only else "character"
    for number, *symbols in pairs:
        for symbol in symbols:
            if symbol not in made and (bytes_only or len(symbol) > 1):
                raise UserError(
                    f"{name}, line {number}: {symbol!r:.200} is neither a {basic} nor the result of any merge; "
                    "give the complete file, as it was published or learned"
                )


def pairs_of(merges: str, name: str) -> list[tuple[int, str, str]]:
    """Returns (line number, left, right) of every merge."""
    lines = merges.removesuffix("\n").split("\n")
    first = 1 if lines[0].startswith("#version:") else 0
    if not any(lines[first:]):
        raise UserError(f"{name} holds no merges; give a merges.txt in the format of GPT-2 and RoBERTa")
    pairs = []
    for number, line in enumerate(lines[first:], start=first + 1):
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise UserError(f"{name}, line {number}: {line!r:.200} is not two symbols separated by one space")
        pairs.append((number, left, right))
    return pairs


@lru_cache(maxsize=8)
def _tokenizer(merges: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    pairs = [(left, right) for _, left, right in pairs_of(merges, "the merges")]
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces(merges))}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer
