"""Reads fairseq's `data-bin` folders: dictionaries, and sentences in pairs of .bin and .idx files, which are memory-mapped.

It reads what `--dataset-impl mmap`, fairseq's default, writes: .idx files that begin with MMIDIDX, with little-endian numbers.
"""

import struct
from pathlib import Path

import numpy as np

from one_layer.data.special_tokens import EOS
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore
from one_layer.system.errors import UserError

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = "<QBQ"  # the version, the code of the dtype of ids, the number of sentences
_KINDS = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4", 10: "<u8"}  # fairseq's codes of dtypes
_AGAIN = "copy it again, or recreate it with fairseq-preprocess"


class DataBin:
    """A folder that fairseq-preprocess wrote, for one pair of languages in either direction."""

    def __init__(self, folder: str | Path, languages: tuple[str, str]) -> None:
        self._folder, self._languages = Path(folder), languages
        if not self._folder.is_dir():
            raise UserError(f"{folder} is not a folder; set data.directory to the folder that fairseq-preprocess wrote")
        first, second = (Vocabulary.load(self._folder / f"dict.{language}.txt", fairseq=True) for language in languages)
        self.vocabularies = first, first if first == second else second

    def read(self, split: str) -> tuple[TokenStore, TokenStore]:
        """Returns the sentences of source and target of a split, checked against each other and against the dictionaries.

        Raises: UserError for sides of unequal length, for an id that is not in the dictionary, for a sentence that does not end with
        eos, and as `read_indexed` does.
        """
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

    def check_whole(self, split: str) -> None:
        """Raises: UserError where another split continues the training text `split`: fairseq reads `train1` as a part of `train`."""
        for prefix in self._prefixes(f"{split}1"):
            if Path(f"{prefix}.idx").is_file():
                raise UserError(f"{prefix}.idx continues {split}, and is not read; preprocess the training text as one")

    def _prefixes(self, split: str, language: str = "") -> list[Path]:
        names = ["-".join(self._languages), "-".join(reversed(self._languages))]
        return [self._folder / f"{split}.{pair}.{language or self._languages[0]}" for pair in names]

    def _prefix(self, split: str, language: str) -> Path:
        prefixes = self._prefixes(split, language)
        for prefix in prefixes:
            if Path(f"{prefix}.idx").is_file():
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
    index, data = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
    for path in (index, data):
        if not path.is_file():
            raise UserError(f"{path} does not exist; {_AGAIN}")
    content = index.read_bytes()
    if not content.startswith(_MAGIC):
        raise UserError(
            f"{index} begins with {content[:9]!r}, and not with {_MAGIC!r}; run fairseq-preprocess with --dataset-impl mmap"
        )
    if len(content) < (place := len(_MAGIC) + struct.calcsize(_HEADER)):
        raise UserError(f"{index} is truncated; {_AGAIN}")
    version, code, count = struct.unpack_from(_HEADER, content, len(_MAGIC))
    if version != 1:
        raise UserError(f"{index} has version {version}; give a file of version 1")
    if code not in _KINDS:
        raise UserError(f"{index} has ids of dtype code {code}; the known codes are {', '.join(map(str, _KINDS))}")
    if not count:
        raise UserError(f"{index} has no sentences; {_AGAIN}")
    if len(content) < place + 12 * count:
        raise UserError(f"{index} is truncated; {_AGAIN}")
    kind = np.dtype(_KINDS[code])
    lengths = np.frombuffer(content, "<i4", count, place).astype(np.int64)
    starts, inside = np.divmod(np.frombuffer(content, "<i8", count, place + 4 * count), kind.itemsize)
    starts = np.where(inside, -1, starts)  # a sentence that does not begin with an id begins nowhere
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
    # A damaged index of many overlapping sentences would ask for much more than the file.
    if (total := int(lengths.sum())) > held:
        raise UserError(f"{index} has sentences of {total:,} ids together, but {data.name} holds {held:,}; {_AGAIN}")
    tokens = np.memmap(data, kind, "r", shape=(held,))
    return TokenStore(np.asarray(tokens), starts, lengths)


def _check(prefix: Path, store: TokenStore, vocabulary: Vocabulary) -> None:
    """Checks every id of the file, because a wrong id would silently mean another token."""
    least, greatest = int(store.tokens.min()), int(store.tokens.max())
    if least < 0 or greatest >= len(vocabulary):
        raise UserError(
            f"{prefix}.bin holds ids from {least} to {greatest:,}, but its dictionary has {len(vocabulary):,} tokens; give the "
            "dict.txt that fairseq-preprocess used"
        )
    last = store.tokens[store.starts + store.lengths - 1]
    if len(wrong := np.flatnonzero(last != EOS)):
        place = int(wrong[0])
        raise UserError(
            f"{prefix}.bin: sentence {place + 1:,} does not end with </s>; run fairseq-preprocess so that it appends eos"
        )
