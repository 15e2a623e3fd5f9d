"""A parallel corpus: read, prepared, turned into ids, with the vocabularies and a report of what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.config import DataConfig
from one_layer.data.preparation import streaming
from one_layer.data.preparation.store import Prepared, content_key, make_prepared, open_prepared
from one_layer.data.preparation.streaming import Shown
from one_layer.data.sources.sources import FairseqFolder, LabelledTexts, ManyPairs, Pairs, Source, open_source
from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.lines import read_lines
from one_layer.data.text.preprocess import check_codes
from one_layer.data.text.vocabulary import SPECIALS, UNK, Vocabulary
from one_layer.data.text.vocabulary_json import read_vocabulary_json
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.errors import UserError
from one_layer.tasks.classification.glue import task_named

__all__ = ["Corpus", "DataConfig", "Split", "load", "load_text_assets", "save_text_assets"]

_TOOLS = ("sacremoses", "subword-nmt", "tokenizers")


@dataclass(frozen=True, eq=False)
class Split:
    """Pairs of one part of a corpus; the training part carries ids only and leaves the texts empty.

    source, target: ids ending in eos, int32 [length] each. source_text: lines as they were read.
    reference: target tokens, BPE joined, for tokenised BLEU. reference_detokenized: plain text as it was written, for sacreBLEU,
    which lower-cases it where that is due; only text that is prepared already may come lower-cased.
    """

    source: TokenStore = field(default_factory=lambda: TokenStore.of([]))
    target: TokenStore = field(default_factory=lambda: TokenStore.of([]))
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
    the report; valid and test keep every pair, so that hypotheses fit the files line by line. (Labelled texts are cut, not
    left out, and those without an agreed label are in no part.)
    With `training=False` the training text is not even read: that split is empty, and what would be built from it
    must be given. Raises UserError for files that cannot be used and where no training pair is left.
    """
    if not training and (vocabularies is None or (config.bpe_merges and codes is None)):
        raise UserError("without the training text the vocabularies and BPE codes of the run are needed")
    source = open_source(config)
    if training:
        source.files(source.train)  # are they there? Better said now than when the rest is read
    raw = {name: source.read(name) for name in dict.fromkeys((source.valid, *source.tests))}
    train, report = Split(), []
    if training:
        prepared = _prepare(config, source, vocabularies, codes)
        assets, report = prepared.assets, list(prepared.report)
        train = Split(prepared.source, prepared.target)
    else:
        assert vocabularies is not None
        assets = _assets(config, vocabularies, _codes(config, codes))
    splits = {name: _scored_split(config, assets, pairs) for name, pairs in raw.items()}
    valid, tests = splits[source.valid], {name: splits[name] for name in source.tests}
    report += [_describe(assets, name, split.source, split.target) for name, split in {"valid": valid, **tests}.items()]
    report.append(_describe_vocabularies(assets))
    if isinstance(source, LabelledTexts):
        report = [*source.report.values(), *report]
    return Corpus(**vars(assets), train=train, valid=valid, tests=tests, report=report)


def _prepare(
    config: DataConfig, source: Source, vocabularies: tuple[Vocabulary, Vocabulary] | None, codes: str | None
) -> Prepared:
    """The training pairs: from the store where there is one that fits, else from the source."""
    if isinstance(source, FairseqFolder):
        return _from_ids(config, source, vocabularies)
    if not config.store:
        return _from_text(config, source, vocabularies, codes)
    options, files = _options(config), source.files(source.train)
    folder = Path(config.store) / content_key(options, files)
    # A run that goes on finds what it made, unless the text has changed since.
    if vocabularies is not None and not _was_made_with(folder, vocabularies, codes):
        options["given"] = [*(vocabulary.fingerprint for vocabulary in vocabularies), codes]
        folder = Path(config.store) / content_key(options, files)
    if folder.is_dir():
        return open_prepared(folder)
    return make_prepared(folder, lambda: _from_text(config, source, vocabularies, codes))


def _was_made_with(folder: Path, vocabularies: tuple[Vocabulary, Vocabulary], codes: str | None) -> bool:
    if not folder.is_dir():
        return False
    assets = open_prepared(folder).assets
    return (assets.vocabularies, assets.codes) == (vocabularies, codes)


def _options(config: DataConfig) -> dict[str, Any]:
    """What decides, with the text, which ids the training text becomes."""
    names = ["tokenize", "normalize", "split_hyphens", "lowercase", "bpe_merges", "prepared"]
    names += ["bpe_kind", "joined_vocabulary", "min_count", "max_length", "labels"]
    options: dict[str, Any] = {name: getattr(config, name) for name in names}
    codes = "".join(line + "\n" for line in read_lines(config.bpe_codes)) if config.bpe_codes else None
    if config.source == "tfds":
        options["split"] = config.train  # a part of a split lies in the same files as the whole
    if config.vocabulary:
        options["vocabulary"] = read_vocabulary_json(config.vocabulary).fingerprint
    return {**options, "languages": config.languages, "codes": codes, "tools": [version(tool) for tool in _TOOLS]}


def _from_text(
    config: DataConfig, source: Source, vocabularies: tuple[Vocabulary, Vocabulary] | None, codes: str | None
) -> Prepared:
    """Reads, prepares and encodes the training text in turn, line after line: what is in between waits in files without names."""
    pairs = source.lines(source.train)
    count, others = streaming.count_lines(pairs)
    if count != others:
        source.read(source.train)  # says so
    codes = _codes(config, codes)
    if not config.prepared and config.bpe_merges and codes is None:
        pairs, counts = streaming.words(pairs, count, config.preprocessing(None))
        codes = learn_bpe_from_counts(counts, config.bpe_merges)
        pairs = streaming.subwords(pairs, count, config.preprocessing(codes))
    elif not config.prepared:
        pairs = streaming.applied(pairs, count, config.preprocessing(codes))
    assets = _assets(
        config, vocabularies or _build_vocabularies(config, _shown(pairs, "counting tokens", count)), codes
    )
    return _fit_for_training(assets, *_encode(config, assets, _shown(pairs, "encoding", count)), config.max_length)


def _shown(pairs: ManyPairs, phase: str, count: int) -> ManyPairs:
    return Shown(pairs[0], phase, count), Shown(pairs[1], phase, count)


def _from_ids(
    config: DataConfig, source: FairseqFolder, vocabularies: tuple[Vocabulary, Vocabulary] | None
) -> Prepared:
    if vocabularies not in (None, source.vocabularies):
        raise UserError(
            f"the dictionaries in {config.directory} are not those that the run began with; restore them, or train into a "
            "fresh --workdir"
        )
    assets = _assets(config, source.vocabularies, _codes(config, None))
    return _fit_for_training(assets, *source.ids(source.train), config.max_length)


def _assets(config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary], codes: str | None) -> TextAssets:
    if config.labels and vocabularies[1].tokens != (known := _labels(config)).tokens:
        names = " ".join(vocabularies[1].tokens[len(SPECIALS) :])
        raise UserError(
            f"the labels of this model are {names:.200}, but {config.labels} has {' '.join(known.tokens[len(SPECIALS) :])}; "
            "give the run or ticket as it was written"
        )
    return TextAssets(*vocabularies, *config.preprocessing(codes))


def _codes(config: DataConfig, codes: str | None) -> str | None:
    """The BPE codes: those given, else of the config's file, if there is one."""
    if codes is not None:
        return codes
    if config.bpe_codes:
        codes = "".join(line + "\n" for line in read_lines(config.bpe_codes))
        check_codes(codes, config.bpe_codes, config.bpe_kind)
        return codes
    return None


def _build_vocabularies(config: DataConfig, train: ManyPairs) -> tuple[Vocabulary, Vocabulary]:
    given = read_vocabulary_json(config.vocabulary) if config.vocabulary else None
    if config.labels:
        texts = config.preprocessing(None)[0].texts(train[0])
        return given or Vocabulary.build(texts, config.min_count), _labels(config)
    if config.joined_vocabulary:
        joined = given or Vocabulary.build(chain(*train), config.min_count)
        return joined, joined
    return given or Vocabulary.build(train[0], config.min_count), Vocabulary.build(train[1], config.min_count)


def _labels(config: DataConfig) -> Vocabulary:
    return Vocabulary(SPECIALS + task_named(config.labels).labels)


def _encode(config: DataConfig, assets: TextAssets, pairs: ManyPairs) -> tuple[TokenStore, TokenStore]:
    encoders: tuple[Callable[[str], np.ndarray], ...]
    encoders = partial(assets.encode_source, longest=config.max_length), assets.target_vocabulary.encode
    source, target = (
        TokenStore.of(map(encode, lines), fitting_type(len(vocabulary)))
        for encode, vocabulary, lines in zip(encoders, assets.vocabularies, pairs, strict=True)
    )
    return source, target


def _fit_for_training(assets: TextAssets, source: TokenStore, target: TokenStore, max_length: int) -> Prepared:
    """The pairs fit for training, and the report's line on them and on what was left out."""
    shorter, longer = np.minimum(source.lengths, target.lengths), np.maximum(source.lengths, target.lengths)
    empty, long = shorter <= 1, (shorter > 1) & (longer > max_length)
    left_out = f"left out: {empty.sum():,} pairs with an empty side, {long.sum():,} with more than {max_length} tokens on a side"
    kept = ~(empty | long)
    if not kept.any():
        raise UserError(f"none of {len(source):,} training pairs can be used; {left_out}")
    source, target = source.select(kept), target.select(kept)
    if assets.labelled:  # no text is ever left out
        full = np.count_nonzero(source.lengths == max_length)
        left_out = f"{full:,} texts have all the {max_length} tokens that data.max_length allows: longer ones were cut"
    return Prepared(assets, source, target, [f"{_describe(assets, 'train', source, target)}; {left_out}"])


def _scored_split(config: DataConfig, assets: TextAssets, raw: Pairs) -> Split:
    """A validation or test part, with the texts that hypotheses are compared with."""
    steps = assets.source_preprocessing, assets.target_preprocessing
    pairs = raw if config.is_prepared else (steps[0].apply(raw[0]), steps[1].apply(raw[1]))
    reference = steps[1].join(pairs[1])
    if config.labels:
        plain = raw[1]
    elif config.is_prepared:
        plain = steps[1].undo(pairs[1])
    elif config.tokenize:
        plain = raw[1]
    else:
        cased = replace(steps[1], lowercase=False)
        plain = cased.undo(cased.apply(raw[1]))
    return Split(*_encode(config, assets, pairs), raw[0], reference, plain)


def _describe(assets: TextAssets, name: str, source: TokenStore, target: TokenStore) -> str:
    sides, what = [], "texts" if assets.labelled else "pairs"
    for language, side in zip(assets.languages, (source,) if assets.labelled else (source, target), strict=False):
        tokens = int(side.lengths.sum()) - len(side)
        unknown = sum(int(np.count_nonzero(ids == UNK)) for ids in side.chunks())
        sides.append(f"{tokens:,} {language} tokens ({100 * unknown / max(tokens, 1):.2f} % unknown)")
    return f"{name}: {len(source):,} {what}, {' and '.join(sides)}"


def _describe_vocabularies(assets: TextAssets) -> str:
    source, target = assets.source_vocabulary, assets.target_vocabulary
    if source is target:
        return f"vocabulary: {len(source):,} tokens, joined"
    sizes = zip(assets.languages, (len(source), len(target)), strict=True)
    return "vocabularies: " + ", ".join(f"{language} {size:,}" for language, size in sizes) + " tokens"
