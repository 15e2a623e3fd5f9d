"""Converts raw text to the model's tokens and back: Moses tokenisation, lower-casing, byte pair encoding (BPE).

BPE is that of Sennrich et al. 2016 (arXiv 1508.07909), section 3.2, applied by subword-nmt, or RoBERTa's BPE on bytes. sacremoses
provides the Moses scripts. All libraries are imported at first use, because text that is already prepared needs none of them.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

from one_layer.data.text import byte_level
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.cleaning import printable
from one_layer.data.text.languages import code, has_own_rules, without_inner_spaces
from one_layer.system.errors import UserError

LABEL = "label"  # stands for the language of a classifier's output
BPE_MARK = "@@"
BPE_KINDS = ("subword-nmt", "byte-level")
_CACHED_WORDS = 200_000  # the most words whose subwords subword-nmt caches
_MOST_DOTS = 1000  # in a row: sacremoses takes time that grows with their square
_MANY_DOTS = re.compile(rf"\.{{{_MOST_DOTS},}}")
_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
_LAST_WORD_WITH_STOP = re.compile(r"[^ .]\.$")


@dataclass(frozen=True)
class Preprocessing:
    """The steps that turn one language's raw text into tokens. Each field switches a step on or off.

    language: selects Moses' rules, however its code is written (see `languages.code`).
    tokenize: apply Moses' tokenisation, with its escapes (`&apos;`, `&quot;`, ...).
    lowercase: make every letter lower-case.
    codes: the text of a BPE codes file, or of a merges.txt if `bpe_kind` is "byte-level" (see `byte_level`); None: no BPE.
    normalize: before `tokenize`, normalise punctuation as Moses does and replace characters that cannot be printed by a space.
    split_hyphens: `tokenize` turns `a-b` into `a @-@ b`.
    pairs: a tab in a line separates two texts, and each text is prepared separately.
    spaced: the script has spaces between words. Where it has none, `tokenize` leaves the text whole, because Moses' rules would cut
        letters from their vowel signs; subwords are then learned on whole sentences, and `undo` puts no space between them.
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

    def __post_init__(self) -> None:
        if self.bpe_kind not in BPE_KINDS:
            raise UserError(f"bpe_kind is {self.bpe_kind!r:.200}; give {' or '.join(BPE_KINDS)}")
        if self.codes is not None:
            check_codes(self.codes, kind=self.bpe_kind)

    def apply(self, lines: Iterable[str]) -> list[str]:
        """Converts raw lines to lines of tokens separated by single spaces."""
        return self.subwords(self.words(lines))

    def words(self, lines: Iterable[str]) -> list[str]:
        """The first half of `apply`: normalises, tokenises and lower-cases, but does not split words into subwords."""
        if self.tokenize and not self.spaced:
            lines = self._each_text(partial(map, _single_spaces), lines)
        elif self.tokenize:
            tokenize = _moses_tokenizer(code(self.language), self.normalize, self.split_hyphens)
            lines = self._each_text(partial(map, tokenize), lines)
        if self.lowercase:
            lines = map(str.lower, lines)
        return list(lines)

    def subwords(self, lines: Iterable[str]) -> list[str]:
        """The second half of `apply`: splits words by BPE, with `@@` after all parts but the last, or into byte-level pieces."""
        if self.codes is None:
            return list(lines)
        split = partial(byte_level.split, self.codes) if self._of_bytes else partial(map, _bpe(self.codes))
        return list(self._each_text(split, lines))

    def _each_text(self, step: Callable[[Iterable[str]], Iterable[str]], lines: Iterable[str]) -> Iterable[str]:
        """Applies `step` to every text; with `pairs`, a line holds two texts."""
        return ("\t".join(step(line.split("\t"))) for line in lines) if self.pairs else step(lines)

    def texts(self, lines: Iterable[str]) -> Iterable[str]:
        """Returns the texts of the lines one by one. A label is not a text."""
        if self.language == LABEL:
            return ()
        return (text for line in lines for text in line.split("\t")) if self.pairs else lines

    def join(self, lines: Iterable[str]) -> list[str]:
        """Undoes `subwords`: joins subwords into words. A line stays one line: byte-level pieces can spell a line break, which becomes a
        space.
        """
        return list(map(_joined_bytes if self._of_bytes else join_bpe, lines))

    def undo(self, lines: Iterable[str]) -> list[str]:
        """Converts lines of tokens to plain text: joins subwords, then applies Moses' detokenisation, which undoes its escapes.

        Letters stay lower-case. Text that was never tokenised stays almost unchanged; with byte-level pieces it stays unchanged, but for
        line breaks.
        """
        words = self.join(lines)
        if not self.spaced:
            return list(map(without_inner_spaces, words))
        if self._of_bytes and not self.tokenize:
            return words
        return list(map(_moses_detokenizer(code(self.language)), words))

    @property
    def lacks_moses_rules(self) -> bool:
        """Whether `tokenize` has no rules that were made for this language."""
        return self.tokenize and self.spaced and not has_own_rules(self.language)

    @property
    def _of_bytes(self) -> bool:
        return self.codes is not None and self.bpe_kind == "byte-level"

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, ready for JSON; without `spaced` if it has its default, as earlier versions wrote them."""
        fields = asdict(self)
        if self.spaced:
            del fields["spaced"]
        return fields

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> Preprocessing:
        """Builds the object from the result of `to_dict`; the last five fields may be missing and then take their defaults.

        Raises: UserError if any other field is missing, or if a field is unknown or has the wrong type.
        """
        types: dict[str, Any] = {"language": str, "tokenize": bool, "lowercase": bool, "codes": str | None}
        types |= {"normalize": bool, "split_hyphens": bool, "bpe_kind": str, "pairs": bool, "spaced": bool}
        later: dict[str, Any] = {
            "normalize": True,
            "split_hyphens": False,
            "bpe_kind": BPE_KINDS[0],
            "pairs": False,
            "spaced": True,
        }
        fields = later | fields
        if fields.keys() != types.keys() or not all(isinstance(fields[name], types[name]) for name in types):
            raise UserError(
                f"a preprocessing must have exactly the fields {', '.join(types)}, each of the right type, not {fields!r:.200}"
            )
        return Preprocessing(**fields)


def _single_spaces(line: str) -> str:
    return " ".join(line.split())


def _joined_bytes(pieces: str) -> str:
    return _LINE_BREAK.sub(" ", byte_level.join(pieces))


def join_bpe(line: str) -> str:
    """Joins the subwords of a line into words: removes every `@@ `, and a `@@` at the end of the line."""
    return (line + " ").replace(BPE_MARK + " ", "").removesuffix(" ")


def learn_bpe(lines: Iterable[str], merges: int) -> str:
    """Learns BPE on tokenised `lines` and returns the text of a codes file with up to `merges` merges.

    For joint codes, chain the lines of both languages. Learning stops early when no pair of symbols occurs twice.
    Raises: UserError if nothing can be merged at all.
    """
    return learn_bpe_from_counts(count_words(lines), merges)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Counts each word of tokenised `lines`. Spaces separate words."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.replace("\r", "").split(" "))  # when subword-nmt reads codes, "\r" ends a line
    del counts[""]
    return counts


def check_codes(codes: str, name: str = "the BPE codes", kind: str = BPE_KINDS[0]) -> None:
    """Checks that `codes` is a codes file that subword-nmt can read or, if `kind` is "byte-level", a merges.txt of bytes.

    Raises: UserError that names the first wrong line.
    """
    if kind == "byte-level":
        byte_level.check_merges(codes, name)
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


@lru_cache(maxsize=8)
def _bpe(codes: str) -> Callable[[str], str]:
    from subword_nmt.apply_bpe import BPE

    bpe = BPE(io.StringIO(codes))

    def segment(line: str) -> str:
        if len(bpe.cache) > _CACHED_WORDS:
            bpe.cache.clear()
        return bpe.segment(line)

    return segment


@lru_cache(maxsize=8)
def _moses_tokenizer(language: str, normalize: bool, split_hyphens: bool) -> Callable[[str], str]:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(language, perl_parity=True), MosesTokenizer(language)

    def tokenize(line: str) -> str:
        line = _MANY_DOTS.sub("." * _MOST_DOTS, line)
        if normalize:
            # Moses' script sees the line end; it needs it to exchange a quotation mark at the end with a full stop.
            line = printable(normalizer.normalize(line + "\n"))
        line = tokenizer.tokenize(line, aggressive_dash_splits=split_hyphens, return_str=True, escape=True).strip(" ")
        # Moses' script separates the full stop from the last word even if that is an abbreviation; sacremoses does not.
        return line[:-1] + " ." if _LAST_WORD_WITH_STOP.search(line) else line

    return tokenize


@lru_cache(maxsize=8)
def _moses_detokenizer(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(language)
    return lambda line: detokenizer.detokenize(line.split(" "), return_str=True, unescape=True)
