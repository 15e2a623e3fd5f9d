"""Reads fairseq's `data-bin` folders: dictionaries, and sentences in pairs of .bin and .idx files, which are memory-mapped.

It reads both kinds of .idx files, with little-endian numbers: the kind that begins with MMIDIDX (`--dataset-impl mmap`), and the
older kind that begins with TNTIDX (`lazy`, `cached`), whose .bin counts ids from 1.
"""

from __future__ import annotations

import struct
from itertools import chain, count, takewhile
from pathlib import Path

import numpy as np

from one_layer.data.special_tokens import EOS
from one_layer.data.stream import on_disk
from one_layer.data.text.fairseq_dictionary import read_dictionary
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.system.errors import UserError

_MAPPED, _OLDER = b"MMIDIDX\x00\x00", b"TNTIDX\x00\x00"
_KINDS = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4", 10: "<u8"}  # fairseq's codes of dtypes
_AGAIN = "copy it again, or recreate it with fairseq-preprocess"


class DataBin:
    """A folder that fairseq-preprocess wrote, for one pair of languages in either direction."""

    def __init__(self, folder: str | Path, languages: tuple[str, str]) -> None:
        self._folder, self._languages = Path(folder), languages
        if not self._folder.is_dir():
            raise UserError(f"{folder} is not a folder; set data.directory to the folder that fairseq-preprocess wrote")
        first, second = (read_dictionary(self._folder / f"dict.{language}.txt") for language in languages)
        self.vocabularies = first, first if first == second else second

    def further(self, split: str) -> list[str]:
        """The splits that continue one: of `train`, `train1`, `train2`, and so on. fairseq reads them as a part of the training text."""
        names = (f"{split}{number}" for number in count(1))
        return list(
            takewhile(lambda name: any(_with(prefix, ".idx").is_file() for prefix in self._prefixes(name)), names)
        )

    def read(self, *splits: str) -> tuple[TokenStore, TokenStore]:
        """Returns the sentences of source and target of the splits, checked against each other and against the dictionaries.

        Raises: UserError for sides of unequal length, for an id that is not in the dictionary, for a sentence that does not end with
        eos, and as `read_indexed` does.
        """
        sides = zip(*map(self._read, splits), strict=True)
        source, target = (
            _joined(stores, vocabulary) for stores, vocabulary in zip(sides, self.vocabularies, strict=True)
        )
        return source, target

    def _read(self, split: str) -> tuple[TokenStore, TokenStore]:
        prefixes = [self._prefix(split, language) for language in self._languages]
        source, target = map(read_indexed, prefixes)
        if len(source) != len(target):
            raise UserError(
                f"{prefixes[0]}.idx has {len(source):,} sentences, but {prefixes[1]}.idx has {len(target):,}; every sentence needs "
                "a translation"
            )
        for prefix, store, vocabulary in zip(prefixes, (source, target), self.vocabularies, strict=True):
            _check(prefix, store, vocabulary)
        return source, target

    def _prefixes(self, split: str, language: str = "") -> list[Path]:
        names = ["-".join(self._languages), "-".join(reversed(self._languages))]
        return [self._folder / f"{split}.{pair}.{language or self._languages[0]}" for pair in names]

    def _prefix(self, split: str, language: str) -> Path:
        prefixes = self._prefixes(split, language)
        for prefix in prefixes:
            if _with(prefix, ".idx").is_file():
                return prefix
        if any(prefix.is_file() for prefix in prefixes):
            raise UserError(
                f"{self._folder} holds {split} as text (--dataset-impl raw); set data.source=text and give the names of its files"
            )
        raise UserError(f"{prefixes[0]}.idx does not exist (nor {prefixes[1].name}.idx); {_AGAIN}")


def read_indexed(prefix: Path) -> TokenStore:
    """Returns the sentences of `prefix`.bin; `prefix`.idx gives their positions.

    Raises: UserError that names a file that is missing, truncated or in another format, or the first sentence that `prefix`.idx
    places beyond the end of `prefix`.bin.
    """
    index, data = _with(prefix, ".idx"), _with(prefix, ".bin")
    for path in (index, data):
        if not path.is_file():
            raise UserError(f"{path} does not exist; {_AGAIN}")
    content = index.read_bytes()
    magic = next((magic for magic in (_MAPPED, _OLDER) if content.startswith(magic)), None)
    if magic is None:
        raise UserError(f"{index} begins with {content[:9]!r}; fairseq's files begin with {_MAPPED!r} or {_OLDER!r}")
    try:
        (version,) = struct.unpack_from("<Q", content, len(magic))
        if version != 1:
            raise UserError(f"{index} has version {version}; give a file of version 1")
        kind, starts, lengths = (_mapped_index if magic == _MAPPED else _older_index)(content, len(magic) + 8)
    except KeyError as error:
        raise UserError(
            f"{index} has ids of dtype code {error}; the known codes are {', '.join(map(str, _KINDS))}"
        ) from None
    except (struct.error, ValueError, OverflowError) as error:  # raised when fewer bytes are left than needed
        raise error if isinstance(error, UserError) else UserError(f"{index} is truncated; {_AGAIN}") from None
    held = data.stat().st_size // kind.itemsize
    ends = starts + lengths
    # A damaged start or length may be near 2⁶³, and their sum may overflow.
    wrong = np.flatnonzero((starts < 0) | (starts > held) | (lengths < 1) | (lengths > held - starts))
    if len(wrong):
        place = int(wrong[0])
        raise UserError(
            f"{index} places sentence {place + 1:,} at ids {starts[place]:,} to {ends[place]:,}, but {data.name} holds "
            f"{held:,} ids; {_AGAIN}"
        )
    if not len(starts):
        raise UserError(f"{index} has no sentences; {_AGAIN}")
    if (
        total := int(lengths.sum())
    ) > held:  # a damaged index of many overlapping sentences would ask for much more than the file
        raise UserError(f"{index} has sentences of {total:,} ids together, but {data.name} holds {held:,}; {_AGAIN}")
    tokens = np.memmap(data, kind, "r", shape=(held,))
    return TokenStore(np.asarray(tokens), starts, lengths, shift=int(content.startswith(_OLDER)))


_NOWHERE = -1  # the start of a sentence that does not begin with an id
Index = tuple[np.dtype, np.ndarray, np.ndarray]  # the dtype of the ids; each sentence's start and length, in ids


def _mapped_index(content: bytes, place: int) -> Index:
    code, count = struct.unpack_from("<BQ", content, place)
    kind, place = np.dtype(_KINDS[code]), place + struct.calcsize("<BQ")
    lengths = np.frombuffer(content, "<i4", count, place).astype(np.int64)
    starts, inside = np.divmod(np.frombuffer(content, "<i8", count, place + 4 * count), kind.itemsize)
    return kind, np.where(inside, _NOWHERE, starts), lengths


def _older_index(content: bytes, place: int) -> Index:
    code, _, count, dimensions = struct.unpack_from("<4Q", content, place)
    kind, place = np.dtype(_KINDS[code]), place + struct.calcsize("<4Q")
    # The two rows are offsets of dimensions and of ids. The lengths follow once more; reading them shows a truncated file.
    _, offsets = np.frombuffer(content, "<i8", 2 * (count + 1), place).reshape(2, -1)
    np.frombuffer(content, "<i8", dimensions, place + 16 * (count + 1))
    return kind, offsets[:-1], np.diff(offsets)


def _joined(stores: tuple[TokenStore, ...], vocabulary: Vocabulary) -> TokenStore:
    """The sentences of several stores in one, which lies in an unnamed temporary file."""
    if len(stores) == 1:
        return stores[0]
    lengths = np.concatenate([store.lengths for store in stores])
    ids = on_disk(chain.from_iterable(store.chunks() for store in stores), fitting_type(len(vocabulary)))
    return TokenStore(ids, np.cumsum(lengths) - lengths, lengths)


def _check(prefix: Path, store: TokenStore, vocabulary: Vocabulary) -> None:
    """Checks every id of the file, because a wrong id would silently mean another token."""
    least, greatest = (int(bound) - store.shift for bound in (store.tokens.min(), store.tokens.max()))
    if least < 0 or greatest >= len(vocabulary):
        raise UserError(
            f"{prefix}.bin holds ids from {least} to {greatest:,}, but its dictionary has {len(vocabulary):,} tokens; give the "
            "dict.txt that fairseq-preprocess used"
        )
    last = store.tokens[store.starts + store.lengths - 1].astype(np.int64) - store.shift
    if len(wrong := np.flatnonzero(last != EOS)):
        place = int(wrong[0])
        raise UserError(
            f"{prefix}.bin: sentence {place + 1:,} does not end with </s>; run fairseq-preprocess so that it appends eos"
        )


def _with(prefix: Path, ending: str) -> Path:
    return prefix.with_name(prefix.name + ending)
