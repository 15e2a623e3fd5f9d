"""The configuration of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from one_layer.data.columns import check_columns, grouped, shares_of
from one_layer.data.text.languages import has_spaces
from one_layer.data.text.preprocess import BPE_KINDS, LABEL, METASPACE, MOSES, Preprocessing
from one_layer.system.errors import UserError

SOURCES = ("toy", "text", "tsv", "fairseq", "tfds", "labelled", "plain", "enwik8")
STREAMS = ("plain", "enwik8")  # one text without sides, as language models read it
NO_LANGUAGE = "text"  # stands for the language of a stream
UNITS = ("bytes", "bpe")
TEACHER_MIXES = ("translations", "both", "references")
HELD_OUT = ("valid", "test")  # the parts that `held_out` may take out of the training text

_MOST_TOY_PAIRS = 10_000_000
_EXAMPLES = {"source_language": "en", "target_language": "fr"}
_FOLDERS = {
    "text": "the parallel text files",
    "fairseq": "dict.*.txt, .bin and .idx files",
    "tsv": "the tables",
    "labelled": "the files",
    "plain": "the text files",
    "enwik8": "the file enwik8",
}
_OWN_TEXT = "which reads no files (configs/text.py trains on your own text)"
# Keys that some sources do not read, these sources, and why.
_Unread = tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]
_UNREAD: _Unread = (
    (("directory",), ("toy",), _OWN_TEXT),
    (("store",), ("toy", "fairseq"), "which needs no preparation"),
    (("held_out",), ("toy", "fairseq", "enwik8"), "which has parts of its own"),
    (("columns",), ("toy", "text", "fairseq", "tfds", "plain", "enwik8"), "which has no tables"),
    (("vocabulary",), ("fairseq",), "which has its own"),
    (
        ("tokenize", "lowercase", "prepared", "undo", "joined_vocabulary", "labels"),
        STREAMS,
        "whose text is read as it is",
    ),
)
_UNREAD_PARTS: _Unread = (
    (("train", "valid", "tests"), ("toy",), _OWN_TEXT),
    (("train", "valid", "tests"), ("enwik8",), "which has parts of its own (data.source=plain reads your own text)"),
)


@dataclass(frozen=True)
class DataConfig:
    """Where the pairs of a corpus come from, and how they are prepared. configs/common.py comments on every key.

    Text files are `{directory}/{name}.{language}`, or that with .gz, for every name in `train`, `valid` and `tests`. In the folder of
    fairseq-preprocess, and in a TFDS data set under `directory`, the names are those of splits. Tables (`tsv`) and files of labelled
    texts are `{directory}/{name}`, or that with .gz; labels have no language. Plain text is in one or many such files; enwik8 is the file
    of that name in `directory`.

    Raises: UserError for a value that is missing, out of range, or does not fit the others.
    """

    source: str = "toy"
    tfds_name: str = ""
    labels: str = ""
    seed: int = 1
    toy_train: int = 20_000
    toy_valid: int = 500
    toy_test: int = 500
    source_language: str = "de"
    target_language: str = "en"
    directory: str = ""
    train: str = "train"
    mix: str = ""
    valid: str = "valid"
    tests: tuple[str, ...] = ("test",)
    columns: str = ""
    delimiter: str = ","
    held_out: float = 0.0
    store: str = ""
    tokenize: bool = False
    normalize: bool = True
    split_hyphens: bool = False
    lowercase: bool = False
    bpe_merges: int = 0
    bpe_codes: str = ""
    bpe_kind: str = BPE_KINDS[0]
    prepared: bool = False
    undo: str = ""
    joined_vocabulary: bool = False
    vocabulary: str = ""
    max_length: int = 175
    max_tokens: int = 4096
    buckets: int = 6
    unit: str = UNITS[0]
    block: int = 512
    mask_share: float = 0.15
    teacher: str = ""
    teacher_mix: str = TEACHER_MIXES[0]
    translations: str = ""

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise UserError(f"data.source={self.source!r:.200} is unknown: give {listed(SOURCES)}")
        if self.source in _FOLDERS and not self.directory:
            raise UserError(f"data.directory is empty: give the folder with {_FOLDERS[self.source]}")
        self._check_read(_UNREAD)
        for name, example in _EXAMPLES.items():
            sided = not self.streamed and not (self.labels and name == "target_language")
            if sided and not getattr(self, name):
                raise UserError(f"data.{name} is empty: give the language's code, for instance data.{name}={example}")
        named_by_language = self.source in ("text", "fairseq", "tfds") and not self.labels  # files and fields
        if named_by_language and self.source_language == self.target_language:
            raise UserError(
                f"data.source_language and data.target_language are both {self.source_language!r:.200}, so with data.source={self.source} "
                "both sides would be one text: give the names of two, or read one file with both as data.source=tsv"
            )
        if self.source == "tfds" and not self.tfds_name:
            raise UserError("data.tfds_name is empty: give the data set's name, for instance wmt14_translate/de-en")
        if not 0 <= self.held_out < 0.5:
            raise UserError(
                f"data.held_out={self.held_out} is not a share: give 0, or a number below 0.5, for instance 0.05"
            )
        if self.held_out and self.train in HELD_OUT:
            raise UserError(
                f"data.train={self.train!r} is the name of a part that data.held_out takes out of the training text: "
                "give the training text another name, or leave data.held_out out"
            )
        shares_of(self.mix, self._names)
        if len(self.corpora()) == 1:  # of several, each is checked by itself
            check_columns(self.source, self.columns, self.delimiter, self.languages)
        self._check_unit()
        if self.source == "toy" and {self.source_language, self.target_language} != {"de", "en"}:
            raise UserError(
                f"the toy language has the sides 'de' and 'en', not {self.source_language!r:.200} and "
                f"{self.target_language!r:.200}: set data.source_language and data.target_language to these two"
            )
        self._check_teacher()
        if self.bpe_merges and (self.bpe_codes or self.is_prepared):
            raise UserError(
                f"data.bpe_merges={self.bpe_merges} learns codes on raw text: give data.bpe_merges=0, or leave out data.bpe_codes, "
                "data.prepared and data.undo"
            )
        self.preprocessing(None, "")  # raises for steps that do not fit together
        floors = {"toy_train": 1, "toy_valid": 1, "toy_test": 1, "bpe_merges": 0, "max_length": 2}
        for name, least in (floors | {"max_tokens": 1, "buckets": 1, "block": 2}).items():
            by_text = name == "max_length" and self.labels and self.max_length == 0  # the training text decides
            if getattr(self, name) < least and not by_text:
                raise UserError(f"data.{name}={getattr(self, name)} is too small: give {least} or more")
        for name in ("toy_train", "toy_valid", "toy_test"):
            if getattr(self, name) > _MOST_TOY_PAIRS:
                raise UserError(
                    f"data.{name}={getattr(self, name)} is too large: the toy language is made in memory; give at most "
                    f"{_MOST_TOY_PAIRS:,}"
                )

    def _check_teacher(self) -> None:
        if self.teacher_mix not in TEACHER_MIXES:
            raise UserError(f"data.teacher_mix={self.teacher_mix!r:.200} is unknown: give {listed(TEACHER_MIXES)}")
        given = [name for name in ("teacher", "translations") if getattr(self, name)]
        if not given or (given == ["teacher"] and (self.labels or self.streamed or self.teacher_mix == "references")):
            return  # such a teacher writes no text
        if len(given) == 2 or self.teacher_mix == "references":
            what = (
                "has what a data.teacher would write" if len(given) == 2 else "has no use with teacher_mix=references"
            )
            raise UserError(f"data.translations {what}: leave one of them out")
        if self.labels or self.source not in ("toy", "text", "tsv", "tfds"):
            raise UserError(
                f"data.{given[0]} is for pairs of lines: leave it out with data.source={self.source!r:.200}"
                + (" and data.labels" if self.labels else "")
                + (", or read the text as data.source=text with data.prepared" if self.source == "fairseq" else "")
            )

    def check_parts(self) -> None:
        """Raises: UserError for an empty name, and for parts that the toy language and enwik8 do not have or `held_out` does not take."""
        if self.held_out and not self.parts_held_out:
            raise UserError(
                f"data.held_out is {self.held_out}, but neither data.valid={self.valid!r} nor data.tests={self.tests!r} is one of its "
                "parts, which are named valid and test; give these names, or leave data.held_out out"
            )
        if "" in self.tests:
            raise UserError(
                f"data.tests={list(self.tests)!r:.200} has an empty name; give names with one comma between them, or () for no test set"
            )
        if "valid" in self.tests and self.valid != "valid":
            raise UserError(
                f"data.tests contains 'valid', but --split=valid is the validation set, data.valid={self.valid!r:.200}; rename the test set"
            )
        self._check_read(_UNREAD_PARTS)

    def _check_read(self, unread: _Unread) -> None:
        """Raises: UserError for a key with a value that the source does not read. No test set is none everywhere."""
        for name, why in ((name, why) for names, sources, why in unread if self.source in sources for name in names):
            if (value := getattr(self, name)) not in (getattr(DataConfig, name), ()):
                raise UserError(
                    f"data.{name}={value!r:.200} has no effect with data.source={self.source!r}, {why}: leave it out"
                )

    @property
    def _names(self) -> list[str]:
        """The names of the corpora in `train`: several only for pairs of files and tables."""
        names = [name.strip() for name in self.train.split(",")]
        return names if self.source in ("text", "tsv") and not self.labels else [self.train]

    def corpora(self) -> list[DataConfig]:
        """The config of each of the corpora that `train` names, with the columns that are its own; this config, if there is one."""
        names = self._names
        if len(names) == 1:
            return [self]
        groups = grouped(self.columns, len(names))
        sources = ["tsv" if self.source == "tsv" and (each or not self.columns) else "text" for each in groups]
        return [
            replace(self, train=name, mix="", source=source, columns=own)
            for name, source, own in zip(names, sources, groups, strict=True)
        ]

    def _check_unit(self) -> None:
        """Checks the keys of plain text, which is never tokenised in another way than `unit` says."""
        if self.unit not in UNITS:
            raise UserError(f"data.unit={self.unit!r:.200} is unknown: give {listed(UNITS)}")
        if not 0.0 < self.mask_share < 1.0:
            raise UserError(
                f"data.mask_share={self.mask_share} is not a share: give a number between 0 and 1, for instance 0.15"
            )
        if not self.streamed:
            return
        if self.unit == "bpe" and self.bpe_kind != "byte-level":
            raise UserError(f"data.unit=bpe, but data.bpe_kind={self.bpe_kind!r:.200}: give data.bpe_kind=byte-level")
        if self.unit == "bpe" and not (self.bpe_merges or self.bpe_codes):
            raise UserError("data.unit=bpe needs data.bpe_merges, a number of merges to learn, or data.bpe_codes")
        for name in ("bpe_merges", "bpe_codes", "vocabulary"):
            if getattr(self, name) and (self.unit != "bpe" or (name == "vocabulary" and not self.bpe_codes)):
                raise UserError(
                    f"data.{name}={getattr(self, name)!r:.200} has no effect with data.unit={self.unit}: leave it out, or give "
                    "data.unit=bpe (a data.vocabulary also needs its data.bpe_codes)"
                )

    @property
    def languages(self) -> tuple[str, str]:
        """(source, target). A stream has none, and labels are in none."""
        if self.streamed:
            return NO_LANGUAGE, NO_LANGUAGE
        return self.source_language, LABEL if self.labels else self.target_language

    @property
    def streamed(self) -> bool:
        """Whether the text has no sides and is read as one stream, as language models do."""
        return self.source in STREAMS

    @property
    def parts_held_out(self) -> list[str]:
        """The parts that `held_out` takes out of the training text: those of `HELD_OUT` that are the validation or a test set."""
        return [name for name in HELD_OUT if self.held_out and name in (self.valid, *self.tests)]

    def preprocessing(self, codes: str | None, language: str, pairs: bool = False) -> Preprocessing:
        """The preprocessing of raw text in a language. `codes`: the text of the BPE codes file; `pairs`: see `Preprocessing`."""
        kind = self.bpe_kind if codes else self.new_lines_kind
        steps = self.tokenize, self.lowercase, codes, self.normalize, self.split_hyphens, kind
        inverse, known = self.undo, self.tokenize or self.bpe_codes or codes or kind == METASPACE
        if (self.is_prepared or self.source == "toy") and not (inverse or known):
            inverse = f"{BPE_KINDS[0]},{MOSES}"  # as most tokens are made that were prepared elsewhere
        return Preprocessing(language, *steps, pairs=pairs, spaced=has_spaces(language), inverse=inverse)

    def describe(self, part: str) -> str:
        """A phrase for error messages about the text of `train` or `valid`: the kind of text and its place."""
        if self.source == "toy":
            return f"toy language's {part} text (data.seed={self.seed})"
        name = self.train if part == "train" else self.valid
        return f"{part} text {name} in {self.directory or self.tfds_name}"

    @property
    def new_lines_kind(self) -> str:
        """How new lines are split: by `bpe_kind`, but not at all where the text was prepared elsewhere and no codes say how."""
        return BPE_KINDS[0] if self.is_prepared and not self.bpe_codes else self.bpe_kind

    @property
    def is_prepared(self) -> bool:
        """Whether the corpus holds tokens already, so that they need no preprocessing."""
        return self.prepared or self.source == "fairseq" or bool(self.undo)


def listed(names: tuple[str, ...], shown: Callable[[str], str] = repr) -> str:
    """The names for a sentence: `'a', 'b' or 'c'`."""
    *most, last = map(shown, names)
    return f"{', '.join(most)} or {last}"
