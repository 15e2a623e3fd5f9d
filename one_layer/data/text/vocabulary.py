"""Vocabularies: map tokens to ids and back. They are read from files of this program, of fairseq, and of Hugging Face (vocab.json)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from one_layer.data.sources.table import json_value
from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.data.text.lines import read_lines
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
# As in SentencePiece: the tokens of bytes, and the letter that stands for a space.
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
SPACE = "▁"
_OVERWRITE = " #fairseq:overwrite"


def split_tokens(line: str) -> list[str]:
    """Returns the tokens of a tokenised line. Only the space separates tokens, as in subword-nmt; a no-break space is text."""
    return [token for token in line.split(" ") if token]


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids; the first four are `<s> <pad> </s> <unk>`.

    `counts` is the number of occurrences of each token in the training text (0 for the four special tokens). Comparisons ignore
    it: two vocabularies are equal if they give the same ids.
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.tokens[: len(SPECIALS)] == SPECIALS and len(self.counts) in (0, len(self.tokens))
        if len(self.ids) != len(self.tokens):
            twice = [token for token, count in Counter(self.tokens).items() if count > 1]
            raise UserError(f"the vocabulary holds {twice[0]!r} more than once; every token must occur exactly once")

    @staticmethod
    def build(lines: Iterable[str], always: Iterable[str] = ()) -> Vocabulary:
        """Builds the vocabulary of tokenised `lines` from every token that occurs, and those of `always`.

        Tokens are sorted by falling count, and equal counts by code points, as in fairseq's `Dictionary.finalize`. Special tokens
        that the text itself contains are not counted.
        """
        counter: Counter[str] = Counter()
        for line in lines:
            counter.update(split_tokens(line))
        for token in SPECIALS:
            del counter[token]
        kept = sorted(counter.items(), key=lambda each: (-each[1], each[0]))
        if not counter:
            raise UserError(
                "a side of the training text has no tokens: its lines are empty; give the files of another text"
            )
        kept += [(token, 0) for token in always if token not in counter]
        tokens, numbers = zip(*kept, strict=True)
        return Vocabulary(SPECIALS + tokens, (0,) * len(SPECIALS) + numbers)

    def encode(self, line: str) -> Int32[np.ndarray, " length"]:
        """Returns the ids of a tokenised line, with eos at the end.

        A token that is not in the vocabulary becomes unk or, if the vocabulary has tokens of bytes, its characters, and the bytes of those
        that are not in it either. A special token that the text itself contains becomes unk too, so that text can neither end a sentence
        nor look like padding.
        """
        ids, found = self.text_ids, list[int]()
        for token in split_tokens(line):
            if token in ids:
                found.append(ids[token])
            else:
                found += self._spelled(token) if self.has_bytes else [UNK]
        return np.array([*found, EOS], dtype=np.int32)

    def encode_texts(self, line: str) -> Int32[np.ndarray, " length"]:
        """Returns the ids of one tokenised text, or of two texts separated by a tab, as RoBERTa does.

        One text becomes `<s> a </s>`, and two become `<s> a </s> </s> b </s>`.
        """
        first, *second = (self.encode(text) for text in line.split("\t"))
        return np.concatenate([[BOS], first, *([EOS, *list(text)] for text in second)]).astype(np.int32)

    def decode(self, ids: Sequence[int] | Int32[np.ndarray, " length"]) -> str:
        """Returns the tokens up to the first eos, joined by spaces, without bos and pad; unk becomes `<unk>`."""
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
    def ids(self) -> dict[str, int]:
        """The id of every token."""
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def text_ids(self) -> dict[str, int]:
        """The same without special tokens, which text cannot contain."""
        return {token: number for token, number in self.ids.items() if number >= len(SPECIALS)}

    @cached_property
    def fingerprint(self) -> str:
        """BLAKE2b (128 bits, hexadecimal) of the tokens in order; equal if every id means the same token."""
        return hashlib.blake2b("\n".join(self.tokens).encode(), digest_size=16).hexdigest()

    @property
    def text(self) -> str:
        """One line `token count` for each id, without the special tokens, as in fairseq's dict.txt."""
        counts = self.counts or (0,) * len(self.tokens)
        pairs = list(zip(self.tokens, counts, strict=True))[len(SPECIALS) :]
        text = "".join(f"{token} {count}\n" for token, count in pairs)
        # Readers remove a U+FEFF at the very beginning as a byte order mark. A second one keeps a first token's own U+FEFF.
        return "\ufeff" + text if text.startswith("\ufeff") else text

    def save(self, path: str | Path) -> None:
        """Writes `text` to `path`."""
        write_atomically(path, self.text)

    @staticmethod
    def load(path: str | Path, fairseq: bool = False) -> Vocabulary:
        """Reads a file that `save` or fairseq wrote. Raises: UserError that names a malformed or repeated line.

        `fairseq`: a dict.txt, of which every line is an id, because each has a row in the embeddings: also those such as
        `madeupword0000 0`, which fill it up to a multiple of 8. A token may occur again if the line ends with `#fairseq:overwrite`. It then
        means the last of its lines, except that a special token keeps its own id. The other lines have names that no text contains.
        """
        return Vocabulary.parse(read_lines(path), str(path), fairseq)

    @staticmethod
    def parse(lines: Iterable[str], name: str, fairseq: bool = False) -> Vocabulary:
        """Builds the vocabulary from the lines of its `text`; errors call them `name`. Raises: UserError as `load` does."""
        tokens, counts = list(SPECIALS), [0] * len(SPECIALS)
        places = {token: place for place, token in enumerate(SPECIALS)}
        for number, line in enumerate(lines, start=1):
            stated = line.rstrip() if fairseq else line
            entry = stated.removesuffix(_OVERWRITE) if fairseq else line
            token, _, count = entry.rpartition(" ")  # as in fairseq, a token may have spaces, though none of a text has
            if not (token.strip(" ") and re.fullmatch("[+-]?[0-9]{1,19}", count)):
                raise UserError(
                    f"{name}, line {number}: {line!r:.200} is not of the form `token count` (a token, one space, a whole number)"
                )
            here, before = len(tokens), places.get(token)
            if before is not None:
                special = before < len(SPECIALS)
                if entry == stated:
                    where = "is a special token" if special else f"is already in line {before - len(SPECIALS) + 1}"
                    hint = f", unless a line ends with{_OVERWRITE}" if fairseq else ""
                    raise UserError(
                        f"{name}, line {number}: {token!r:.200} {where}; every token may occur only once{hint}"
                    )
                if special:
                    token = f"<overwritten:{here}>"
                else:
                    tokens[before] = f"<overwritten:{before}>"
            places[token] = here
            tokens.append(token)
            counts.append(int(count))
        return Vocabulary(tuple(tokens), tuple(counts))

    @cached_property
    def has_bytes(self) -> bool:
        """Whether every byte has a token, so that every text has ids."""
        return self.text_ids.keys() >= set(BYTES)

    def _spelled(self, token: str) -> list[int]:
        ids = self.text_ids
        found = (
            [letter] if letter in ids else [BYTES[byte] for byte in letter.replace(SPACE, " ").encode()]
            for letter in token
        )
        return [ids[each] for tokens in found for each in tokens]


def unknown_marked(line: str) -> str:
    """A tokenised line with `<<unk>>` for `<unk>`, as fairseq writes what the dictionary lacked in references.

    A hypothesis's own `<unk>` then never counts as right.
    """
    return " ".join(f"<{SPECIALS[UNK]}>" if token == SPECIALS[UNK] else token for token in line.split(" "))


def read_ids(path: str | Path) -> dict[str, int]:
    """Returns the id of every token.

    Raises: UserError for a file that is not such an object, and for a token or an id that occurs twice. The message names the file,
    and the token or the id.
    """
    try:
        ids = json_value("\n".join(read_lines(path)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}); copy it again") from None
    if not isinstance(ids, dict) or not all(type(number) is int and number >= 0 for number in ids.values()):
        raise UserError(f"{path} must be a JSON object that maps every token to its id, like RoBERTa's vocab.json")
    tokens: dict[int, str] = {}
    for token, number in ids.items():
        if (other := tokens.setdefault(number, token)) != token:
            raise UserError(
                f"{path}: {token!r:.200} and {other!r:.200} have the same id, {number:,}; each needs its own id"
            )
    return ids


def read_vocabulary_json(path: str | Path) -> Vocabulary:
    """Returns a vocabulary of the tokens in the order of their ids, without counts.

    Raises: UserError as `read_ids` does, for gaps in the ids, for tokens that a line of text cannot contain, and if ids 0 to 3 are
    not `<s> <pad> </s> <unk>`, as they are in RoBERTa's file.
    """
    ids = read_ids(path)
    for token in ids:
        if not token or any(letter in " \n" or "\ud800" <= letter <= "\udfff" for letter in token):
            raise UserError(
                f"{path}: the token {token!r:.200} must not be empty, nor contain a space, a line end or a half of a surrogate pair"
            )
    taken = set(ids.values())
    if gaps := [number for number in range(len(ids)) if number not in taken]:
        raise UserError(
            f"{path}: no token has the id {gaps[0]}; {len(ids):,} tokens must have the ids 0 to {len(ids) - 1:,}"
        )
    ordered = tuple(sorted(ids, key=ids.__getitem__))
    if ordered[: len(SPECIALS)] != SPECIALS:
        raise UserError(
            f"{path}: the ids 0 to 3 are {' '.join(ordered[:4])!r:.200}; they must be {' '.join(SPECIALS)}, as in RoBERTa's file"
        )
    if len(ordered) == len(SPECIALS):
        raise UserError(f"{path} holds only the four special tokens; give the vocab.json of a model")
    return Vocabulary(ordered)
