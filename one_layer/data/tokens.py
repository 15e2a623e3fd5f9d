"""Stores sentences of token ids one after another in one array, in memory or memory-mapped, so that processes share it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Int32, Integer

from one_layer.data.special_tokens import EOS, PAD

_CHUNK = 1 << 16  # sentences that `chunks` gathers at a time

LONGEST = 1024  # tokens of a line that is scored or translated; attention's memory grows with the square of the length
LEAST_OF_PAIRS = 6  # ids of two texts that are cut, one token of each: `<s> a </s> </s> b </s>`


def fitting_type(vocabulary: int) -> type[np.unsignedinteger]:
    """Returns uint16 if it holds every id of a vocabulary of this size, otherwise uint32."""
    return np.uint16 if vocabulary <= 1 << 16 else np.uint32


class TokenStore(Sequence):
    """A sequence of sentences. Sentence i is `tokens[starts[i] : starts[i] + lengths[i]]`, as int32 [length].

    Nothing is copied, so `tokens` may be larger than memory.
    """

    def __init__(
        self,
        tokens: Integer[np.ndarray, " tokens"],
        starts: Integer[np.ndarray, " sentences"],
        lengths: Integer[np.ndarray, " sentences"],
    ) -> None:
        self.tokens, self.starts, self.lengths = tokens, starts, lengths.astype(np.int64)

    @staticmethod
    def of(sentences: Iterable[Int[np.ndarray, "_"]], kind: type[np.integer] = np.int32) -> TokenStore:
        """Stores the sentences in memory with the dtype `kind`. If `sentences` is already a TokenStore, returns it unchanged."""
        if isinstance(sentences, TokenStore):
            return sentences
        flat, lengths = bytearray(), []
        for ids in sentences:
            flat += np.asarray(ids).astype(kind).tobytes()
            lengths.append(len(ids))
        counts = np.array(lengths, np.int64)
        return TokenStore(np.frombuffer(flat, kind), np.cumsum(counts) - counts, counts)

    @staticmethod
    def open(path: Path) -> TokenStore:
        """Memory-maps the files that `save` wrote."""
        files = (path.with_name(f"{path.name}.{part}.npy") for part in ("tokens", "lengths"))
        tokens, lengths = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
        return TokenStore(tokens, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    def save(self, path: Path, kind: type[np.unsignedinteger]) -> None:
        """Writes `path`.tokens.npy, with ids of the dtype `kind`, and `path`.lengths.npy, chunk by chunk."""
        total = int(self.lengths.sum())
        np.save(path.with_name(f"{path.name}.lengths.npy"), self.lengths.astype(np.uint32))
        with path.with_name(f"{path.name}.tokens.npy").open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (total,)}
            np.lib.format.write_array_header_1_0(file, header)
            for ids in self.chunks():
                file.write(ids.astype(kind).tobytes())

    @cached_property
    def fingerprint(self) -> str:
        """BLAKE2b (128 bits, hexadecimal) of all ids and lengths: equal where the sentences are."""
        digest = hashlib.blake2b(self.lengths.astype("<i8").tobytes(), digest_size=16)
        for ids in self.chunks():
            digest.update(ids.astype("<i4").tobytes())
        return digest.hexdigest()

    def chunks(self) -> Iterator[Int32[np.ndarray, " tokens"]]:
        """Yields all ids in order; each array holds the ids of many sentences."""
        for first in range(0, len(self), _CHUNK):
            lengths = self.lengths[first : first + _CHUNK]
            inner = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            places = np.repeat(self.starts[first : first + _CHUNK], lengths) + inner
            yield self.tokens[places].astype(np.int32)

    def select(self, chosen: Bool[np.ndarray, " sentences"] | Int[np.ndarray, " chosen"]) -> TokenStore:
        """Returns a store of the chosen sentences. It does not copy their tokens."""
        return TokenStore(self.tokens, self.starts[chosen], self.lengths[chosen])

    def within(self, other: TokenStore) -> Bool[np.ndarray, " sentences"]:
        """Which sentences `other` has too."""
        known = {ids.tobytes() for ids in other.select(np.isin(other._keys, self._keys))}
        return np.array([ids.tobytes() in known for ids in self], bool)

    @cached_property
    def _keys(self) -> Int[np.ndarray, " sentences"]:
        """A number for each sentence, from its length and its first tokens: equal where sentences are, and seldom elsewhere."""
        keys, weights = self.lengths * ((1 << 61) - 1), np.array([1, 1 << 15, 1 << 30, 1 << 45])
        for first in range(0, len(self), _CHUNK):
            rows = np.arange(first, min(first + _CHUNK, len(self)))
            keys[rows] += self.padded(rows, len(weights)).astype(np.int64) @ weights
        return keys

    def padded(self, rows: Int[np.ndarray, "rows"], width: int) -> Int32[np.ndarray, "rows width"]:
        """Returns the sentences `rows` as a matrix, padded on the right; an index of -1 gives a row of padding."""
        if not len(self.tokens):
            return np.full((len(rows), width), PAD, np.int32)
        columns = np.arange(width)
        real = columns[None, :] < np.where(rows < 0, 0, self.lengths[rows])[:, None]
        found = self.tokens[np.where(real, self.starts[rows][:, None] + columns[None, :], 0)].astype(np.int32)
        return np.where(real, found, np.int32(PAD))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, place: int) -> np.ndarray:  # type: ignore[override]  # a part is `select`
        start = int(self.starts[place])
        return self.tokens[start : start + int(self.lengths[place])].astype(np.int32)


def cut(ids: Int32[np.ndarray, " length"], longest: int = LONGEST) -> Int32[np.ndarray, " shorter"]:
    """At most `longest` ids, the last of which is eos."""
    return ids if len(ids) <= longest else np.append(ids[: longest - 1], np.int32(EOS))


def cut_texts(ids: Int32[np.ndarray, " length"], longest: int) -> Int32[np.ndarray, " shorter"]:
    """At most `longest` ids of one text or of two, `<s> a </s>` or `<s> a </s> </s> b </s>`: of two, the longer one is cut first.

    `longest` is at least `LEAST_OF_PAIRS` where there may be two. Both then keep tokens, as with Hugging Face's `longest_first`.
    """
    end = ids.tolist().index(EOS)
    first, second = ids[1:end], ids[end + 2 : -1]
    if len(ids) <= longest or end == len(ids) - 1:
        return cut(ids, longest)
    left = longest - (len(ids) - len(first) - len(second))
    of_first = min(len(first), max(-(-left // 2), left - len(second)))
    return np.concatenate([ids[:1], first[:of_first], [EOS, EOS], second[: left - of_first], [EOS]]).astype(np.int32)
