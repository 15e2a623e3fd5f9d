"""Vocabularies: tokens to ids and back."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from one_layer.data.text.lines import read_lines
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.special_tokens import BOS, EOS, PAD, UNK

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")


def split_tokens(line: str) -> list[str]:
    """The tokens of a tokenised line: split at the space alone, as subword-nmt does (a no-break space is text)."""
    return [token for token in line.split(" ") if token]


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids; the first four are `<s> <pad> </s> <unk>`.

    `counts` holds how often each token stood in the training text (0 for the four special ones) and takes no part
    in comparisons: two vocabularies are the same if they give the same ids.
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise UserError(f"a vocabulary begins with {' '.join(SPECIALS)}, not with {' '.join(self.tokens[:4])!r}")
        if len(self._ids) != len(self.tokens):
            twice = [token for token, count in Counter(self.tokens).items() if count > 1]
            raise UserError(f"the vocabulary holds {twice[0]!r} more than once: every token needs one id")
        if self.counts and len(self.counts) != len(self.tokens):
            raise UserError(f"{len(self.tokens)} tokens need as many counts, not {len(self.counts)}")

    @staticmethod
    def build(lines: Iterable[str], min_count: int = 1) -> Vocabulary:
        """The vocabulary of tokenised `lines`: every token seen at least `min_count` times.

        Order: falling count, equal counts by code points, as fairseq's `Dictionary.finalize` leaves it. The special
        tokens written out in the text are not counted.
        """
        counter: Counter[str] = Counter()
        for line in lines:
            counter.update(split_tokens(line))
        for special in SPECIALS:
            counter.pop(special, None)
        kept = sorted(((token, count) for token, count in counter.items() if count >= min_count), key=_rank)
        if not kept:
            raise UserError(f"no token occurs min_count={min_count} times or more: lower min_count or give more text")
        tokens, counts = zip(*kept, strict=True)
        return Vocabulary(SPECIALS + tokens, (0,) * len(SPECIALS) + counts)

    def encode(self, line: str) -> Int32[np.ndarray, " length"]:
        """The ids of a tokenised line, with eos at the end.

        What the vocabulary lacks becomes unk; so does a special token written out in the text, which thus can
        neither end a sentence nor pass for padding.
        """
        ids = self._text_ids
        return np.array([ids.get(token, UNK) for token in split_tokens(line)] + [EOS], dtype=np.int32)

    def encode_texts(self, line: str, longest: int) -> Int32[np.ndarray, " length"]:
        """The ids of one tokenised text, or of two with a tab between: `<s> a </s>` or `<s> a </s> </s> b </s>`, as RoBERTa's.

        What is longer than `longest` is cut at its end, and still ends with `</s>`.
        """
        first, *second = (self.encode(text) for text in line.split("\t"))
        ids = np.concatenate([[BOS], first, *([EOS, *list(text)] for text in second)]).astype(np.int32)
        return ids if len(ids) <= longest else np.append(ids[: longest - 1], np.int32(EOS))

    def decode(self, ids: Sequence[int] | Int32[np.ndarray, " length"]) -> str:
        """The tokens up to the first eos, joined by spaces, without bos and pad; unk is written `<unk>`."""
        words = []
        for token in np.asarray(ids).tolist():
            if token == EOS:
                break
            if token not in (BOS, PAD):
                words.append(self.tokens[token])
        return " ".join(words)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def fingerprint(self) -> str:
        """BLAKE2b (128 bits, hexadecimal) of the tokens in order: equal where every id means the same token."""
        return hashlib.blake2b("\n".join(self.tokens).encode(), digest_size=16).hexdigest()

    @property
    def text(self) -> str:
        """`token count` lines in the order of ids without the special tokens, as in fairseq's dict.txt."""
        counts = self.counts or (0,) * len(self.tokens)
        pairs = list(zip(self.tokens, counts, strict=True))[len(SPECIALS) :]
        text = "".join(f"{token} {count}\n" for token, count in pairs)
        # Readers take a U+FEFF at the very beginning for a byte order mark: one more keeps that of a first token.
        return "\ufeff" + text if text.startswith("\ufeff") else text

    def save(self, path: str | Path) -> None:
        """Writes `text`."""
        write_atomically(path, self.text)

    @staticmethod
    def load(path: str | Path) -> Vocabulary:
        """Reads what `save` (or fairseq) wrote. Raises UserError naming the line that is malformed or a repetition."""
        return Vocabulary.parse(read_lines(path), str(path))

    @staticmethod
    def parse(lines: Iterable[str], name: str) -> Vocabulary:
        """The vocabulary of the lines of its `text`; `name` is what an error calls them. Raises UserError as `load` does."""
        tokens, counts, seen = list(SPECIALS), [0] * len(SPECIALS), dict.fromkeys(SPECIALS, 0)
        for number, line in enumerate(lines, start=1):
            token, _, count = line.rpartition(" ")
            if not token or " " in token or not (count.isascii() and count.isdigit() and len(count) < 20):
                raise UserError(
                    f"{name}, line {number}: {line!r:.200} is not `token count` (a token, one space, a number)"
                )
            if token in seen:
                where = f"stands already in line {seen[token]}" if seen[token] else "is a special token"
                raise UserError(f"{name}, line {number}: {token!r:.200} {where}: every token may stand once only")
            seen[token] = number
            tokens.append(token)
            counts.append(int(count))
        return Vocabulary(tuple(tokens), tuple(counts))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def _text_ids(self) -> dict[str, int]:
        return {token: number for token, number in self._ids.items() if number >= len(SPECIALS)}


def _rank(item: tuple[str, int]) -> tuple[int, str]:
    token, count = item
    return -count, token
