"""The configuration of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.data.text.preprocess import BPE_KINDS, Preprocessing
from one_layer.errors import UserError

SOURCES = ("toy", "text", "fairseq", "tfds", "labelled")


@dataclass(frozen=True)
class DataConfig:
    """Where pairs come from and what is done to them.

    Text files are `{directory}/{name}.{language}` (or that with .gz) for every name in `train`, `valid`, `tests`; in a folder
    that fairseq-preprocess left, and in a data set of TFDS under `directory`, the names are its splits'. Files of labelled texts
    are `{directory}/{name}`, or that with .gz; labels are in no language.
    """

    source: str = "toy"  # "toy": the embedded language; "text": parallel files; "fairseq": a data-bin folder; "tfds"
    tfds_name: str = ""  # "wmt14_translate/de-en", or, with `labels`, "glue/qqp"
    labels: str = (
        ""  # the task of one_layer.tasks.classification.glue whose labelled texts these are; empty: pairs to translate
    )
    seed: int = 1  # of the toy language's sentences
    toy_train: int = 20_000  # pairs
    toy_valid: int = 500
    toy_test: int = 500
    source_language: str = "de"
    target_language: str = "en"
    directory: str = ""
    train: str = "train"
    valid: str = "valid"
    tests: tuple[str, ...] = ("test",)
    store: str = ""  # a folder that keeps the training text as ids, made once from text and options; empty: no
    tokenize: bool = False  # Moses, on raw text
    normalize: bool = True  # Moses' normalisation of punctuation, before tokenize
    split_hyphens: bool = False  # tokenize makes `a @-@ b` of `a-b`
    lowercase: bool = False
    bpe_merges: int = 0  # > 0: learn that many on both sides of the training text
    bpe_codes: str = ""  # a codes file to apply instead
    bpe_kind: str = BPE_KINDS[0]  # "subword-nmt", or "byte-level": bpe_codes is RoBERTa's (GPT-2's) merges.txt
    prepared: bool = False  # the files are what tokenize, lowercase and bpe_codes give: apply these to new text only
    joined_vocabulary: bool = False
    vocabulary: str = ""  # a vocab.json (token -> id) to take as the source's vocabulary, and if joined as the target's
    min_count: int = 1  # rarer tokens of the training text become unk
    max_length: int = 175  # tokens with eos; training pairs with a longer side are left out and counted
    max_tokens: int = 4096  # the token budget of an update
    buckets: int = 6  # how many padded lengths there are

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise UserError(f"data.source={self.source!r} is unknown: give {_listed(SOURCES)}")
        what = {
            "text": "the parallel text files",
            "fairseq": "dict.*.txt, .bin and .idx files",
            "labelled": "the files",
        }
        if self.source in what and not self.directory:
            raise UserError(f"data.directory is empty: give the folder with {what[self.source]}")
        if self.source == "tfds" and not self.tfds_name:
            raise UserError("data.tfds_name is empty: give the data set's name, for instance wmt14_translate/de-en")
        if self.store and self.source not in ("text", "tfds", "labelled"):
            raise UserError(f"data.store keeps what is made of text: leave it out where data.source={self.source!r}")
        if self.source == "toy" and {self.source_language, self.target_language} != {"de", "en"}:
            raise UserError(
                f"the toy language has the sides 'de' and 'en', not {self.source_language!r} and "
                f"{self.target_language!r}: set data.source_language and data.target_language to these two"
            )
        if self.bpe_merges and (self.bpe_codes or self.is_prepared):
            raise UserError("data.bpe_merges learns codes on raw text: leave out data.bpe_codes and data.prepared")
        if self.bpe_kind not in BPE_KINDS:
            raise UserError(f"data.bpe_kind={self.bpe_kind!r} is unknown: give {_listed(BPE_KINDS)}")
        if self.bpe_kind == "byte-level" and not self.bpe_codes:
            raise UserError(
                "data.bpe_kind=byte-level needs merges that are learned already: give their file, data.bpe_codes"
            )
        if self.vocabulary and self.source == "fairseq":
            raise UserError("data.vocabulary is of no use where data.source='fairseq': its folder has dictionaries")
        floors = {"toy_train": 1, "toy_valid": 1, "toy_test": 1, "bpe_merges": 0, "min_count": 1, "max_length": 2}
        for name, least in (floors | {"max_tokens": 1, "buckets": 1}).items():
            if getattr(self, name) < least:
                raise UserError(f"data.{name}={getattr(self, name)} is too small: give {least} or more")

    @property
    def languages(self) -> tuple[str, str]:
        """(source, target)."""
        return self.source_language, self.target_language

    def preprocessing(self, codes: str | None, language: str, pairs: bool = False) -> Preprocessing:
        """What is done to raw text of a language; `codes`: the text of the BPE codes file, `pairs`: see `Preprocessing`."""
        steps = self.tokenize, self.lowercase, codes, self.normalize, self.split_hyphens, self.bpe_kind
        return Preprocessing(language, *steps, pairs=pairs)

    def describe(self, part: str) -> str:
        """`train` or `valid` as an error calls it: the kind of text and where it lies."""
        if self.source == "toy":
            return f"toy language's {part} text (data.seed={self.seed})"
        name = self.train if part == "train" else self.valid
        return f"{part} text {name} in {self.directory or self.tfds_name}"

    @property
    def is_prepared(self) -> bool:
        """Whether the corpus holds tokens, so that nothing is done to them."""
        return self.prepared or self.source == "fairseq"


def _listed(names: tuple[str, ...]) -> str:
    *most, last = map(repr, names)
    return f"{', '.join(most)} or {last}"
