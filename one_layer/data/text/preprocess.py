"""From raw text to the tokens a model sees, and back: Moses tokenisation, lower-casing, byte pair encoding.

BPE: Sennrich et al. 2016 (arXiv 1508.07909), section 3.2, applied by subword-nmt, or on bytes as RoBERTa has it; the Moses scripts
by sacremoses. All are imported when first used: text that is prepared already needs none.
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
from one_layer.errors import UserError

LABEL = "label"  # the language of what a classifier says
BPE_MARK = "@@"
BPE_KINDS = ("subword-nmt", "byte-level")
_CACHED_WORDS = 200_000  # that subword-nmt remembers the parts of
_LAST_WORD_WITH_STOP = re.compile(r"[^ .]\.$")


@dataclass(frozen=True)
class Preprocessing:
    """What is done to one language's raw text. Each step is left out where its field says so.

    language: two-letter code, for Moses' rules. tokenize: Moses' tokenisation, with its escapes (`&apos;`, `&quot;`, ...);
    before it, with `normalize`, Moses' normalisation of punctuation and a space for what cannot be printed; `split_hyphens`
    makes `a @-@ b` of `a-b`. codes: the text of a BPE codes file; with bpe_kind "byte-level" of a merges.txt, see `byte_level`.
    pairs: a tab in a line separates two texts, each of which is prepared by itself.
    """

    language: str
    tokenize: bool = False
    lowercase: bool = False
    codes: str | None = None
    normalize: bool = True
    split_hyphens: bool = False
    bpe_kind: str = BPE_KINDS[0]
    pairs: bool = False

    def __post_init__(self) -> None:
        if self.bpe_kind not in BPE_KINDS:
            raise UserError(f"bpe_kind is {self.bpe_kind!r:.200}; known are {' and '.join(BPE_KINDS)}")
        if self.codes is not None:
            check_codes(self.codes, kind=self.bpe_kind)

    def apply(self, lines: Iterable[str]) -> list[str]:
        """Raw lines to lines of tokens separated by single spaces."""
        return self.subwords(self.words(lines))

    def words(self, lines: Iterable[str]) -> list[str]:
        """The first half of `apply`: normalised, tokenised, lower-cased; not yet split into subwords."""
        if self.tokenize:
            tokenize = _moses_tokenizer(self.language, self.normalize, self.split_hyphens)
            lines = self._each_text(partial(map, tokenize), lines)
        if self.lowercase:
            lines = map(str.lower, lines)
        return list(lines)

    def subwords(self, lines: Iterable[str]) -> list[str]:
        """The second half of `apply`: every word split by BPE, all parts but the last marked by `@@`, or into byte-level pieces."""
        if self.codes is None:
            return list(lines)
        split = partial(byte_level.split, self.codes) if self._of_bytes else partial(map, _bpe(self.codes))
        return list(self._each_text(split, lines))

    def _each_text(self, step: Callable[[Iterable[str]], Iterable[str]], lines: Iterable[str]) -> Iterable[str]:
        """`step` on every text."""
        return ("\t".join(step(line.split("\t"))) for line in lines) if self.pairs else step(lines)

    def texts(self, lines: Iterable[str]) -> Iterable[str]:
        """The texts of lines, each by itself; a label is none."""
        if self.language == LABEL:
            return ()
        return (text for line in lines for text in line.split("\t")) if self.pairs else lines

    def join(self, lines: Iterable[str]) -> list[str]:
        """Undoes `subwords`: lines of words again."""
        return list(map(byte_level.join if self._of_bytes else join_bpe, lines))

    def undo(self, lines: Iterable[str]) -> list[str]:
        """Lines of tokens to plain text: subwords joined, then Moses' detokenisation, which undoes its escapes.

        Letters stay lower-case. Text that never was tokenised passes almost unchanged, and that of byte-level pieces exactly so.
        """
        words = self.join(lines)
        return words if self._of_bytes and not self.tokenize else [_moses_detokenizer(self.language)(w) for w in words]

    @property
    def _of_bytes(self) -> bool:
        return self.codes is not None and self.bpe_kind == "byte-level"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> Preprocessing:
        """What `to_dict` gave, the last four fields by default. Raises UserError where others are missing, unknown or of another type."""
        types: dict[str, Any] = {"language": str, "tokenize": bool, "lowercase": bool, "codes": str | None}
        types |= {"normalize": bool, "split_hyphens": bool, "bpe_kind": str, "pairs": bool}
        later: dict[str, Any] = {"normalize": True, "split_hyphens": False, "bpe_kind": BPE_KINDS[0], "pairs": False}
        fields = later | fields
        if fields.keys() != types.keys() or not all(isinstance(fields[name], types[name]) for name in types):
            raise UserError(f"a preprocessing holds exactly {', '.join(types)}, not {fields!r:.200}")
        return Preprocessing(**fields)


def join_bpe(line: str) -> str:
    """The words of a line of subwords: every `@@ ` taken out, also one left over at the end."""
    return (line + " ").replace(BPE_MARK + " ", "").removesuffix(" ")


def learn_bpe(lines: Iterable[str], merges: int) -> str:
    """The text of a codes file with up to `merges` merges, learned on tokenised `lines`.

    For joint codes chain both languages' lines. Learning stops early where no pair of symbols occurs twice.
    Raises UserError where nothing can be merged at all.
    """
    return learn_bpe_from_counts(count_words(lines), merges)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word stands in tokenised `lines`: what spaces separate."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.replace("\r", "").split(" "))  # subword-nmt takes "\r" for a line end when it reads codes
    del counts[""]
    return counts


def check_codes(codes: str, name: str = "the BPE codes", kind: str = BPE_KINDS[0]) -> None:
    """Raises UserError, naming the line, unless `codes` is a codes file that subword-nmt can read, or a merges.txt of bytes."""
    if kind == "byte-level":
        byte_level.check_merges(codes, name)
        return
    lines = codes.rstrip("\n").split("\n")
    first = 0
    if lines[0].startswith("#version:"):
        if lines[0].strip() not in ("#version: 0.1", "#version: 0.2"):
            raise UserError(
                f"{name}, line 1: {lines[0]!r:.200} is unknown; versions 0.1 and 0.2 of subword-nmt are read"
            )
        first = 1
    if len(lines) == first or not codes:
        raise UserError(f"{name}: no merges; a codes file as subword-nmt learn-bpe writes it is needed")
    for number, line in enumerate(lines[first:], start=first + 1):
        if len([part for part in line.strip("\r ").split(" ") if part]) != 2 or "  " in line:
            raise UserError(f"{name}, line {number}: {line!r:.200} is not two symbols with a space between")
    if byte_level.LETTERS[ord(" ")] in codes and "</w>" not in codes:
        raise UserError(
            f"{name}: these merges are of bytes, as GPT-2 and RoBERTa have them; give data.bpe_kind=byte-level"
        )


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
        if normalize:
            # With the line end that Moses' script sees, so that a quotation mark at the end changes places with a full stop.
            line = printable(normalizer.normalize(line + "\n"))
        line = tokenizer.tokenize(line, aggressive_dash_splits=split_hyphens, return_str=True, escape=True).strip(" ")
        # Moses' script takes the full stop off the last word even where that is an abbreviation; sacremoses does not.
        return line[:-1] + " ." if _LAST_WORD_WITH_STOP.search(line) else line

    return tokenize


@lru_cache(maxsize=8)
def _moses_detokenizer(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(language)
    return lambda line: detokenizer.detokenize(line.split(" "), return_str=True, unescape=True)
