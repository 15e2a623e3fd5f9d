"""A parallel corpus: read, prepared, turned into ids, with the vocabularies and a report of what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from one_layer.data import toy
from one_layer.data.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.preprocess import Preprocessing, check_codes, join_bpe, learn_bpe
from one_layer.data.text import read_lines, read_parallel
from one_layer.data.vocabulary import UNK, Vocabulary
from one_layer.errors import UserError

__all__ = ["Corpus", "DataConfig", "Split", "load", "load_text_assets", "save_text_assets"]

Pairs = tuple[list[str], list[str]]


@dataclass(frozen=True)
class DataConfig:
    """Where pairs come from and what is done to them.

    Text files are `{directory}/{name}.{language}` (or that with .gz) for every name in `train`, `valid`, `tests`.
    """

    source: str = "toy"  # "toy": the embedded language; "text": parallel files
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
    tokenize: bool = False  # Moses, on raw text
    normalize: bool = True  # Moses' normalisation of punctuation, before tokenize
    split_hyphens: bool = False  # tokenize makes `a @-@ b` of `a-b`
    lowercase: bool = False
    bpe_merges: int = 0  # > 0: learn that many on both sides of the training text
    bpe_codes: str = ""  # a codes file to apply instead
    prepared: bool = False  # the files are what tokenize, lowercase and bpe_codes give: apply these to new text only
    joined_vocabulary: bool = False
    min_count: int = 1  # rarer tokens of the training text become unk
    max_length: int = 175  # tokens with eos; training pairs with a longer side are left out and counted
    max_tokens: int = 4096  # the token budget of an update
    buckets: int = 6  # how many padded lengths there are

    def __post_init__(self) -> None:
        if self.source not in ("toy", "text"):
            raise UserError(f"data.source={self.source!r} is unknown: give 'toy' or 'text'")
        if self.source == "text" and not self.directory:
            raise UserError("data.directory is empty: give the folder with the parallel text files")
        if self.source == "toy" and {self.source_language, self.target_language} != {"de", "en"}:
            raise UserError(
                f"the toy language has the sides 'de' and 'en', not {self.source_language!r} and "
                f"{self.target_language!r}: set data.source_language and data.target_language to these two"
            )
        if self.bpe_merges and (self.bpe_codes or self.prepared):
            raise UserError("data.bpe_merges learns codes on raw text: leave out data.bpe_codes and data.prepared")
        floors = {"toy_train": 1, "toy_valid": 1, "toy_test": 1, "bpe_merges": 0, "min_count": 1, "max_length": 2}
        for name, least in (floors | {"max_tokens": 1, "buckets": 1}).items():
            if getattr(self, name) < least:
                raise UserError(f"data.{name}={getattr(self, name)} is too small: give {least} or more")

    @property
    def languages(self) -> tuple[str, str]:
        """(source, target)."""
        return self.source_language, self.target_language

    def preprocessing(self, codes: str | None) -> tuple[Preprocessing, Preprocessing]:
        """What is done to raw text of the source and of the target; `codes`: the text of the BPE codes file."""
        source, target = (
            Preprocessing(language, self.tokenize, self.lowercase, codes, self.normalize, self.split_hyphens)
            for language in self.languages
        )
        return source, target


@dataclass(frozen=True, eq=False)
class Split:
    """Pairs of one part of a corpus; the training part carries ids only and leaves the texts empty.

    source, target: ids ending in eos, int32 [length] each. source_text: lines as they were read.
    reference: target tokens, BPE joined, for tokenised BLEU. reference_detokenized: plain text, for sacreBLEU.
    """

    source: list[np.ndarray] = field(default_factory=list)
    target: list[np.ndarray] = field(default_factory=list)
    source_text: list[str] = field(default_factory=list)
    reference: list[str] = field(default_factory=list)
    reference_detokenized: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Corpus(TextAssets):
    """All of a task's text; with a joined vocabulary source and target share one object."""

    train: Split
    valid: Split
    tests: dict[str, Split]
    report: list[str]  # lines for people: pairs, tokens, vocabularies, what was left out, unknown share


def load(
    config: DataConfig,
    vocabularies: tuple[Vocabulary, Vocabulary] | None = None,
    codes: str | None = None,
    training: bool = True,
) -> Corpus:
    """Reads the text, prepares it and turns it into ids.

    `vocabularies` (source, target) and `codes` are those saved with a run; without them they are built from the
    training text. Training pairs with an empty side or a side longer than `max_length` are left out and counted in
    the report; valid and test keep every pair, so that hypotheses fit the files line by line.
    With `training=False` the training text is not even read: that split is empty, and what would be built from it
    must be given. Raises UserError for files that cannot be used and where no training pair is left.
    """
    if not training and (vocabularies is None or (config.bpe_merges and codes is None)):
        raise UserError("without the training text the vocabularies and BPE codes of the run are needed")
    raw_train, raw_valid, raw_tests = _read(config, training)
    words = raw_train if config.prepared else _words(config, raw_train)
    if codes is None:
        codes = _codes(config, words)
    steps = config.preprocessing(codes)
    pairs = words if config.prepared else (steps[0].subwords(words[0]), steps[1].subwords(words[1]))
    source_vocabulary, target_vocabulary = vocabularies or _build_vocabularies(config, pairs)
    assets = TextAssets(source_vocabulary, target_vocabulary, steps[0], steps[1])

    train, report = _training_split(assets, pairs, config.max_length) if training else (Split(), [])
    valid = _scored_split(config, assets, raw_valid)
    tests = {name: _scored_split(config, assets, raw) for name, raw in raw_tests.items()}
    report += [_describe(assets, name, split) for name, split in {"valid": valid, **tests}.items()]
    report.append(_describe_vocabularies(assets))
    return Corpus(source_vocabulary, target_vocabulary, steps[0], steps[1], train, valid, tests, report)


def _read(config: DataConfig, training: bool) -> tuple[Pairs, Pairs, dict[str, Pairs]]:
    """The lines of train (none unless `training`), valid and every test set, as they stand in the files."""
    if config.source == "toy":
        parts = toy.generate(config.seed, train=config.toy_train, valid=config.toy_valid, test=config.toy_test)
        if config.source_language == "en":
            parts = {name: (english, german) for name, (german, english) in parts.items()}
        return parts["train"] if training else ([], []), parts["valid"], {"test": parts["test"]}

    def read(name: str) -> Pairs:
        source, target = (Path(config.directory) / f"{name}.{language}" for language in config.languages)
        return read_parallel(source, target)

    train = read(config.train) if training else ([], [])
    return train, read(config.valid), {name: read(name) for name in config.tests}


def _words(config: DataConfig, raw: Pairs) -> Pairs:
    source, target = config.preprocessing(None)
    return source.words(raw[0]), target.words(raw[1])


def _codes(config: DataConfig, words: Pairs) -> str | None:
    """The BPE codes that the config asks for: from its file, or learned on both sides' words together."""
    if config.bpe_codes:
        codes = "".join(line + "\n" for line in read_lines(config.bpe_codes))
        check_codes(codes, config.bpe_codes)
        return codes
    return learn_bpe(chain(*words), config.bpe_merges) if config.bpe_merges else None


def _build_vocabularies(config: DataConfig, train: Pairs) -> tuple[Vocabulary, Vocabulary]:
    if config.joined_vocabulary:
        joined = Vocabulary.build(chain(*train), config.min_count)
        return joined, joined
    return Vocabulary.build(train[0], config.min_count), Vocabulary.build(train[1], config.min_count)


def _encode(assets: TextAssets, pairs: Pairs) -> tuple[list[np.ndarray], list[np.ndarray]]:
    source_lines, target_lines = pairs
    source = [assets.source_vocabulary.encode(line) for line in source_lines]
    return source, [assets.target_vocabulary.encode(line) for line in target_lines]


def _training_split(assets: TextAssets, pairs: Pairs, max_length: int) -> tuple[Split, list[str]]:
    """The pairs fit for training, and the report's lines on them and on what was left out."""
    encoded = list(zip(*_encode(assets, pairs), strict=True))
    whole = [pair for pair in encoded if min(map(len, pair)) > 1]
    kept = [pair for pair in whole if max(map(len, pair)) <= max_length]
    empty, long = len(encoded) - len(whole), len(whole) - len(kept)
    left_out = f"left out: {empty:,} pairs with an empty side, {long:,} with more than {max_length} tokens on a side"
    if not kept:
        raise UserError(f"none of {len(encoded):,} training pairs can be used; {left_out}")
    split = Split([source for source, _ in kept], [target for _, target in kept])
    return split, [f"{_describe(assets, 'train', split)}; {left_out}"]


def _scored_split(config: DataConfig, assets: TextAssets, raw: Pairs) -> Split:
    """A validation or test part, with the texts that hypotheses are compared with."""
    steps = assets.source_preprocessing, assets.target_preprocessing
    pairs = raw if config.prepared else (steps[0].apply(raw[0]), steps[1].apply(raw[1]))
    reference = [join_bpe(line) for line in pairs[1]]
    if config.tokenize and not config.prepared:
        # A lower-cased model is compared with lower-cased text: sacreBLEU itself minds case.
        plain = [line.lower() for line in raw[1]] if config.lowercase else raw[1]
    else:
        plain = steps[1].undo(reference)
    return Split(*_encode(assets, pairs), raw[0], reference, plain)


def _describe(assets: TextAssets, name: str, split: Split) -> str:
    sides = []
    for language, side in zip(assets.languages, (split.source, split.target), strict=True):
        tokens = sum(map(len, side)) - len(side)
        unknown = sum(int(np.count_nonzero(ids == UNK)) for ids in side)
        sides.append(f"{tokens:,} {language} tokens ({100 * unknown / max(tokens, 1):.2f} % unknown)")
    return f"{name}: {len(split):,} pairs, {' and '.join(sides)}"


def _describe_vocabularies(assets: TextAssets) -> str:
    source, target = assets.source_vocabulary, assets.target_vocabulary
    if source is target:
        return f"vocabulary: {len(source):,} tokens, joined"
    sizes = zip(assets.languages, (len(source), len(target)), strict=True)
    return "vocabularies: " + ", ".join(f"{language} {size:,}" for language, size in sizes) + " tokens"
