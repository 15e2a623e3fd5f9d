"""Converts raw text to the model's tokens and back: Moses tokenisation, lower-casing, byte pair encoding (BPE).

BPE is that of Sennrich et al. 2016 (arXiv 1508.07909), section 3.2, applied by subword-nmt, on words with their spaces (`metaspace`), or
RoBERTa's BPE on bytes. Only the last two give every text back. Libraries are imported at first use, because prepared text needs none.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from one_layer.data.text import byte_level, metaspace, moses
from one_layer.data.text.languages import code, without_inner_spaces
from one_layer.data.text.lines import read_lines
from one_layer.system.errors import UserError

LABEL = "label"  # stands for the language of a classifier's output
BPE_MARK = "@@"
METASPACE = "metaspace"
BPE_KINDS = ("subword-nmt", "byte-level", METASPACE)
MOSES = "moses"
_FIRST = ("language", "tokenize", "lowercase", "codes")  # fields of every `Preprocessing` in a file
_CACHED_WORDS = 200_000  # the most words whose subwords subword-nmt caches


@dataclass(frozen=True)
class Preprocessing:
    """The steps that turn one language's raw text into tokens. Each field switches a step on or off.

    language: selects Moses' rules, however its code is written (see `languages.code`).
    tokenize: apply Moses' tokenisation, with its escapes (`&apos;`, `&quot;`, ...).
    lowercase: make every letter lower-case.
    codes: the text of a BPE codes file, or of a merges.txt if `bpe_kind` is "byte-level" (see `byte_level`); None: no BPE.
    bpe_kind: how words are split. "metaspace" keeps the text as it is, and needs no `tokenize`; see the module of that name.
    normalize: before `tokenize`, normalise punctuation as Moses does and replace characters that cannot be printed by a space.
    split_hyphens: `tokenize` turns `a-b` into `a @-@ b`.
    pairs: a tab in a line separates two texts, and each text is prepared separately.
    spaced: the script has spaces between words. Where it has none, `tokenize` leaves the text whole, because Moses' rules would cut
        letters from their vowel signs; subwords are then learned on whole sentences, and `undo` puts no space between them.
    inverse: what `undo` reverses, for text that was prepared elsewhere: names of `INVERSES`, with commas between them, or "none". Empty:
        the steps above.
    """

    language: str
    tokenize: bool = False
    lowercase: bool = False
    codes: str | None = None
    normalize: bool = True
    split_hyphens: bool = False
    bpe_kind: str = BPE_KINDS[0]
    pairs: bool = False
    spaced: bool = True
    inverse: str = ""

    def __post_init__(self) -> None:
        if self.bpe_kind not in BPE_KINDS:
            raise UserError(f"data.bpe_kind={self.bpe_kind!r:.200} is unknown: give {' or '.join(BPE_KINDS)}")
        if self.tokenize and self.bpe_kind == METASPACE:
            raise UserError(
                "data.bpe_kind=metaspace keeps text as it is, but data.tokenize changes it: give data.bpe_kind=subword-nmt, or leave "
                "data.tokenize out"
            )
        if self.inverse and not _INVERSE.fullmatch(self.inverse):
            raise UserError(
                f"data.undo={self.inverse!r:.200} is unknown: give {', '.join(INVERSES)} or moses, one of the first three and moses with a "
                "comma between them (subword-nmt,moses), or none"
            )
        if self.codes is not None:
            check_codes(self.codes, kind=self.bpe_kind)
        if self.inverse == ",".join(self._reversed):  # the same steps are equal, whatever says how they are undone
            object.__setattr__(self, "inverse", "")

    def apply(self, lines: Iterable[str]) -> list[str]:
        """Converts raw lines to lines of tokens separated by single spaces."""
        return self.subwords(self.words(lines))

    def words(self, lines: Iterable[str]) -> list[str]:
        """The first half of `apply`: normalises, tokenises and lower-cases, but does not split words into subwords."""
        if self.bpe_kind == METASPACE:
            cased = map(str.lower, lines) if self.lowercase else lines
            return list(self._each_text(metaspace.words, cased))
        if self.tokenize and not self.spaced:
            lines = self._each_text(lambda line: " ".join(line.split()), lines)
        elif self.tokenize:
            tokenize = moses.tokenizer(code(self.language), self.normalize, self.split_hyphens)
            lines = self._each_text(tokenize, lines)
        if self.lowercase:
            lines = map(str.lower, lines)
        return list(lines)

    def subwords(self, lines: Iterable[str]) -> list[str]:
        """The second half of `apply`: splits words by BPE, with `@@` after all parts but the last, or into pieces that hold spaces."""
        if self.codes is None:
            return list(lines)
        split = _SPLITTERS[self.bpe_kind](self.codes)
        return list(self._each_text(split, lines))

    def _each_text(self, step: Callable[[str], str], lines: Iterable[str]) -> Iterable[str]:
        """Applies `step` to every text; with `pairs`, a line holds two texts."""
        return ("\t".join(map(step, line.split("\t"))) for line in lines) if self.pairs else map(step, lines)

    def texts(self, lines: Iterable[str]) -> Iterable[str]:
        """Returns the texts of the lines one by one. A label is not a text."""
        if self.language == LABEL:
            return ()
        return (text for line in lines for text in line.split("\t")) if self.pairs else lines

    def join(self, lines: Iterable[str]) -> list[str]:
        """Undoes `subwords`: joins subwords into words. Pieces that hold their spaces give text, in which they may spell a line end."""
        joined = (INVERSES[name] for name in self.undone if name in INVERSES)
        return list(map(next(joined, str), lines))

    def undo(self, lines: Iterable[str]) -> list[str]:
        """Converts lines of tokens to plain text: joins subwords and, where text was tokenised, applies Moses' detokenisation, which undoes
        its escapes. Letters stay lower-case.
        """
        words = self.join(lines)
        if MOSES not in self.undone:
            return words
        return list(map(moses.detokenizer(code(self.language)) if self.spaced else without_inner_spaces, words))

    @property
    def undone(self) -> list[str]:
        """The names of what `undo` reverses: one of `INVERSES`, `moses`, both or neither."""
        return self.inverse.split(",") if self.inverse else self._reversed

    @property
    def _reversed(self) -> list[str]:
        if self.bpe_kind == METASPACE:
            return ["sentencepiece"]
        split = [BPE_KINDS[0] if self.codes is None else self.bpe_kind] if self.codes or self.tokenize else []
        return [*split, MOSES] if self.tokenize else split

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, ready for JSON; without `spaced` and `inverse` where they have the values that an absent field stands for."""
        fields = asdict(self)
        absent = {"spaced": True, "inverse": _inverse_before(fields)}
        return {name: value for name, value in fields.items() if name not in absent or absent[name] != value}

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> Preprocessing:
        """Builds the object from the result of `to_dict`; the last six fields may be missing, as earlier versions did not have them.

        Raises: UserError if any other field is missing, or if a field is unknown or has the wrong type.
        """
        types = get_type_hints(Preprocessing)
        known = {*_FIRST} <= fields.keys() <= types.keys()
        if not known or not all(isinstance(value, types[name]) for name, value in fields.items()):
            raise UserError(
                f"a preprocessing must have the fields {', '.join(_FIRST)} and may have {', '.join([*types][len(_FIRST) :])}, each of the "
                f"right type, not {fields!r:.200}"
            )
        return Preprocessing(**{"inverse": _inverse_before(fields), **fields})


def _inverse_before(fields: dict[str, Any]) -> str:
    """The `inverse` where the field is absent: earlier versions joined and detokenised text of which they knew no step."""
    knows = fields.get("tokenize") or fields.get("codes") is not None or fields.get("bpe_kind") == METASPACE
    return "" if knows else f"{BPE_KINDS[0]},{MOSES}"


def join_bpe(line: str) -> str:
    """Joins the subwords of a line into words: removes every `@@ `, and a `@@` at the end of the line."""
    return (line + " ").replace(BPE_MARK + " ", "").removesuffix(" ")


INVERSES: dict[str, Callable[[str], str]] = {
    BPE_KINDS[0]: join_bpe,
    "byte-level": byte_level.join,
    "sentencepiece": metaspace.join,
}
_INVERSE = re.compile(rf"none|{MOSES}|({'|'.join(INVERSES)})(,{MOSES})?")


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Counts each word of tokenised `lines`. Spaces separate words."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.replace("\r", "").split(" "))  # when subword-nmt reads codes, "\r" ends a line
    del counts[""]
    return counts


def check_codes(codes: str, name: str = "the BPE codes", kind: str = BPE_KINDS[0]) -> None:
    """Checks that `codes` is a codes file that subword-nmt can read or, if `kind` is another, a file of merges.

    Raises: UserError that names the first wrong line.
    """
    if kind != BPE_KINDS[0]:
        byte_level.check_merges(codes, name, bytes_only=kind == "byte-level")
        return
    lines = codes.rstrip("\n").split("\n")
    first = 0
    if lines[0].startswith("#version:"):
        if lines[0].strip() not in ("#version: 0.1", "#version: 0.2"):
            raise UserError(
                f"{name}, line 1: {lines[0]!r:.200} is unknown; give a codes file of subword-nmt's version 0.1 or 0.2"
            )
        first = 1
    if len(lines) == first or not codes:
        raise UserError(f"{name} holds no merges; give a codes file that subword-nmt learn-bpe wrote")
    for number, line in enumerate(lines[first:], start=first + 1):
        if len([part for part in line.strip("\r ").split(" ") if part]) != 2 or "  " in line:
            raise UserError(f"{name}, line {number}: {line!r:.200} is not two symbols separated by one space")
    if byte_level.LETTERS[ord(" ")] in codes and "</w>" not in codes:
        raise UserError(f"{name} holds byte-level merges, as GPT-2 and RoBERTa use them; set data.bpe_kind=byte-level")


def read_codes(path: str | Path, kind: str) -> str:
    """The text of a file of codes or merges, whose `kind` is one of BPE_KINDS. Raises: UserError as `read_lines` and `check_codes` do."""
    codes = "".join(f"{line}\n" for line in read_lines(path))
    check_codes(codes, str(path), kind)
    return codes


@lru_cache(maxsize=8)
def _bpe(codes: str) -> Callable[[str], str]:
    from subword_nmt.apply_bpe import BPE

    bpe = BPE(io.StringIO(codes))

    def segment(line: str) -> str:
        if len(bpe.cache) > _CACHED_WORDS:
            bpe.cache.clear()
        if BPE_MARK not in line:
            return bpe.segment(line)
        # A mark at the end of a word is text, so that another mark goes before its end.
        words = map(bpe.segment, line.split(" "))
        return " ".join(
            f"{word[:-1]}{BPE_MARK} {word[-1]}" if word.endswith(BPE_MARK) else word for word in words if word
        )

    return segment


_SPLITTERS: dict[str, Callable[[str], Callable[[str], str]]] = {
    BPE_KINDS[0]: _bpe,
    "byte-level": byte_level.splitter,
    METASPACE: metaspace.splitter,
}
