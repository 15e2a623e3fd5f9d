"""Reads the splits of a corpus, prepares them and turns them into ids, with the vocabularies and a report for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from one_layer.data.config import DataConfig
from one_layer.data.preparation import streaming
from one_layer.data.preparation.store import Prepared, content_key, make_prepared, open_prepared
from one_layer.data.preparation.streaming import Shown
from one_layer.data.reader import ParallelReader
from one_layer.data.sources.pairs import FairseqFolder, ManyPairs, Pairs, Source
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.lines import read_lines
from one_layer.data.text.preprocess import check_codes
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.text.vocabulary_json import read_vocabulary_json
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.errors import UserError

Vocabularies = tuple[Vocabulary, Vocabulary]

PARALLEL = ParallelReader()

_TOOLS = ("sacremoses", "subword-nmt", "tokenizers")


@dataclass(frozen=True, eq=False)
class Split:
    """The pairs of one split of a corpus. The training split has ids only, and no texts.

    - `source`, `target`: ids ending in eos, each int32 [length].
    - `source_text`: the lines as they were read.
    - `reference`: target tokens, BPE joined, for tokenised BLEU.
    - `reference_detokenized`: plain text with its original case, for sacreBLEU, which lower-cases it if needed. If the files were
      prepared already, it may be lower-cased.
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
    """All splits of a task's text. With a joined vocabulary, source and target share one object.

    `tests` has the test sets that were asked for. `valid` is empty if only test sets were asked for.
    """

    train: Split
    valid: Split
    tests: dict[str, Split]
    report: list[str]  # lines for people: pairs, tokens, vocabularies, what was left out, unknown share

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the ids of both sides of `train` and `valid`, by which a run recognises its text."""
        parts = {"train": self.train, "valid": self.valid}
        return {name: f"{part.source.fingerprint} {part.target.fingerprint}" for name, part in parts.items()}


def load(
    config: DataConfig,
    vocabularies: Vocabularies | None = None,
    codes: str | None = None,
    reader: ParallelReader = PARALLEL,
) -> Corpus:
    """Reads the text of all splits, prepares it and turns it into ids, with `reader`.

    `vocabularies` (source, target) and `codes` are those saved with a run; if they are not given, they are made from the training text.
    Training pairs that the reader rejects are left out and counted in the report. Validation and test sets keep every pair, so that
    hypotheses match the files line by line.

    Raises: UserError for files that cannot be used, and if no training pair is left.
    """
    _check_files(config, vocabularies, codes)
    source = reader.open(config)
    source.files(source.train)  # raises for missing files now, before the rest is read
    raw = {name: source.read(name) for name in dict.fromkeys((source.valid, *source.tests))}
    prepared = _prepare(config, reader, source, vocabularies, codes)
    assets, train = prepared.assets, Split(prepared.source, prepared.target)
    splits = {name: _scored_split(config, reader, assets, pairs) for name, pairs in raw.items()}
    valid, tests = splits[source.valid], {name: splits[name] for name in source.tests}
    report = [*source.report.values(), *prepared.report]
    report += [_describe(reader, assets, name, split) for name, split in {"valid": valid, **tests}.items()]
    report.append(_describe_vocabularies(assets))
    return Corpus(**vars(assets), train=train, valid=valid, tests=tests, report=report)


def load_scored(
    config: DataConfig,
    vocabularies: Vocabularies,
    codes: str | None,
    wanted: str = "",
    reader: ParallelReader = PARALLEL,
) -> Corpus:
    """Reads the splits to be scored, with a run's vocabularies and codes. The training text is not read.

    `wanted`: `valid`, the name of a test set, or `test` for all test sets; empty for all of these. Other splits are not read.

    Raises: UserError for a split that the config does not have, and for files that cannot be used.
    """
    if config.bpe_merges and codes is None:
        raise UserError("the BPE codes of the run are needed: they cannot be learned without its training text")
    source = reader.open(config)
    names = _scored_names(source, wanted)
    assets = _assets(config, reader, vocabularies, _codes(config, codes))
    raw = {part: source.read(part) for part in dict.fromkeys(names.values())}
    splits = {name: _scored_split(config, reader, assets, raw[part]) for name, part in names.items()}
    report = [*source.report.values(), *(_describe(reader, assets, name, split) for name, split in splits.items())]
    valid, tests = splits.pop("valid", Split()), splits
    return Corpus(
        **vars(assets), train=Split(), valid=valid, tests=tests, report=[*report, _describe_vocabularies(assets)]
    )


def _check_files(config: DataConfig, vocabularies: Vocabularies | None, codes: str | None) -> None:
    """Raises: UserError if a file of codes or a vocabulary is there, but is not what a run began with (`vocabularies`, `codes`), and for
    byte-level text without merges, which only a stream of text learns.
    """
    if config.bpe_kind == "byte-level" and codes is None and not config.bpe_codes:
        raise UserError(
            "data.bpe_kind=byte-level needs merges that were learned before: give their file as data.bpe_codes, or a run that has "
            "them as train.init_from"
        )
    saved = {"bpe_codes": codes, "vocabulary": vocabularies[0] if vocabularies else None}
    for name, own in saved.items():
        path = getattr(config, name)
        if own is None or not path or not Path(path).is_file():
            continue
        found = read_vocabulary_json(path) if name == "vocabulary" else _codes(config, None)
        if found != own:
            raise UserError(
                f"data.{name}={path} is not the file that this run began with; give that file, or train in a new --workdir"
            )


def _scored_names(source: Source, wanted: str) -> dict[str, str]:
    """The source's names of the wanted splits, by the names that users give."""
    known = {"valid": source.valid, **{name: name for name in source.tests}}
    if not wanted:
        return known
    if wanted in known:
        return {wanted: known[wanted]}
    if wanted == "test" and source.tests:
        return {name: name for name in source.tests}
    every = " (and test: all test sets)" if source.tests else ", and no test set: data.tests is empty"
    raise UserError(f"--split={wanted!r} is unknown; this run has {', '.join(known)}{every}")


def _prepare(
    config: DataConfig, reader: ParallelReader, source: Source, vocabularies: Vocabularies | None, codes: str | None
) -> Prepared:
    """The training pairs: from the store if it has them, else from the source."""
    if isinstance(source, FairseqFolder):
        return _from_ids(config, reader, source, vocabularies)
    if not config.store:
        return _from_text(config, reader, source, vocabularies, codes)
    options, files = _options(config, reader), source.files(source.train)
    folder = Path(config.store) / content_key(options, files)
    # A resumed run finds the store that it made, unless the text has changed since.
    if vocabularies is not None and not _was_made_with(folder, vocabularies, codes):
        options["given"] = [*(vocabulary.fingerprint for vocabulary in vocabularies), codes]
        folder = Path(config.store) / content_key(options, files)
    if folder.is_dir():
        return open_prepared(folder)
    return make_prepared(folder, lambda: _from_text(config, reader, source, vocabularies, codes))


def _was_made_with(folder: Path, vocabularies: Vocabularies, codes: str | None) -> bool:
    if not folder.is_dir():
        return False
    assets = open_prepared(folder).assets
    return (assets.vocabularies, assets.codes) == (vocabularies, codes)


def _options(config: DataConfig, reader: ParallelReader) -> dict[str, Any]:
    """Everything but the text itself that decides the ids of the training text."""
    names = ["tokenize", "normalize", "split_hyphens", "lowercase", "bpe_merges", "prepared"]
    names += ["bpe_kind", "joined_vocabulary", "min_count", "max_length", "labels"]
    options: dict[str, Any] = {name: getattr(config, name) for name in names}
    codes = "".join(line + "\n" for line in read_lines(config.bpe_codes)) if config.bpe_codes else None
    if config.source == "tfds":
        options["split"] = config.train  # a slice of a split has the same files as the whole split
    for name in ("columns", "held_out"):  # only where they are given, so that stores of earlier versions are found
        if getattr(config, name):
            options[name] = getattr(config, name)
    if config.vocabulary:
        options["vocabulary"] = read_vocabulary_json(config.vocabulary).fingerprint
    tools = [version(tool) for tool in _TOOLS]
    return {**options, "languages": reader.languages(config), "codes": codes, "tools": tools}


def _from_text(
    config: DataConfig, reader: ParallelReader, source: Source, vocabularies: Vocabularies | None, codes: str | None
) -> Prepared:
    """Reads, prepares and encodes the training text, line after line: intermediate data goes to unnamed temporary files."""
    pairs = source.lines(source.train)
    count, others = streaming.count_lines(pairs)
    if count != others:
        source.read(source.train)  # raises the error about the counts
    codes = _codes(config, codes)
    if not config.prepared and config.bpe_merges and codes is None:
        pairs, counts = streaming.words(pairs, count, reader.preprocessing(config, None))
        codes = learn_bpe_from_counts(counts, config.bpe_merges)
        pairs = streaming.subwords(pairs, count, reader.preprocessing(config, codes))
    elif not config.prepared:
        pairs = streaming.applied(pairs, count, reader.preprocessing(config, codes))
    if vocabularies is None:
        vocabularies = reader.vocabularies(config, _shown(pairs, "counting tokens", count))
    assets = _assets(config, reader, vocabularies, codes)
    return _for_training(config, reader, assets, *_encode(config, reader, assets, _shown(pairs, "encoding", count)))


def _shown(pairs: ManyPairs, phase: str, count: int) -> ManyPairs:
    return Shown(pairs[0], phase, count), Shown(pairs[1], phase, count)


def _from_ids(
    config: DataConfig, reader: ParallelReader, source: FairseqFolder, vocabularies: Vocabularies | None
) -> Prepared:
    if vocabularies not in (None, source.vocabularies):
        raise UserError(
            f"the dictionaries in {config.directory} are not those that the run began with; restore them, or train in a "
            "new --workdir"
        )
    assets = _assets(config, reader, source.vocabularies, _codes(config, None))
    return _for_training(config, reader, assets, *source.ids(source.train))


def _assets(config: DataConfig, reader: ParallelReader, vocabularies: Vocabularies, codes: str | None) -> TextAssets:
    reader.check_vocabularies(config, vocabularies)
    return TextAssets(*vocabularies, *reader.preprocessing(config, codes))


def _codes(config: DataConfig, codes: str | None) -> str | None:
    """The BPE codes: those given, else those of the config's file, if there is one."""
    if codes is not None:
        return codes
    if config.bpe_codes:
        codes = "".join(line + "\n" for line in read_lines(config.bpe_codes))
        check_codes(codes, config.bpe_codes, config.bpe_kind)
        return codes
    return None


def _encode(
    config: DataConfig, reader: ParallelReader, assets: TextAssets, pairs: ManyPairs
) -> tuple[TokenStore, TokenStore]:
    encoders = reader.encoders(config, assets.vocabularies)
    source, target = (
        TokenStore.of(map(encode, lines), fitting_type(len(vocabulary)))
        for encode, vocabulary, lines in zip(encoders, assets.vocabularies, pairs, strict=True)
    )
    return source, target


def _for_training(
    config: DataConfig, reader: ParallelReader, assets: TextAssets, source: TokenStore, target: TokenStore
) -> Prepared:
    """The pairs that can be used for training, and the report's line about them and about the rejected pairs."""
    kept, left_out = reader.fit(config, source, target)
    if not kept.any():
        raise UserError(f"none of {len(source):,} training pairs can be used; {left_out}")
    source, target = source.select(kept), target.select(kept)
    return Prepared(assets, source, target, [f"{reader.describe(assets, 'train', source, target)}; {left_out}"])


def _scored_split(config: DataConfig, reader: ParallelReader, assets: TextAssets, raw: Pairs) -> Split:
    """A validation or test split, with the reference texts."""
    steps = assets.source_preprocessing, assets.target_preprocessing
    pairs = raw if config.is_prepared else (steps[0].apply(raw[0]), steps[1].apply(raw[1]))
    reference = steps[1].join(pairs[1])
    plain = reader.plain_reference(config, raw, pairs[1], steps[1])
    source, target = map(reader.cut, _encode(config, reader, assets, pairs))
    return Split(source, target, raw[0], reference, plain)


def _describe(reader: ParallelReader, assets: TextAssets, name: str, split: Split) -> str:
    cut = sum(int((side.lengths == reader.longest).sum()) for side in (split.source, split.target))
    said = f"; {cut:,} lines have {reader.longest:,} tokens: longer ones were cut to that" if cut else ""
    return reader.describe(assets, name, split.source, split.target) + said


def _describe_vocabularies(assets: TextAssets) -> str:
    source, target = assets.source_vocabulary, assets.target_vocabulary
    if source is target:
        return f"vocabulary: {len(source):,} tokens, joined"
    sizes = zip(assets.languages, (len(source), len(target)), strict=True)
    return "vocabularies: " + ", ".join(f"{language} {size:,}" for language, size in sizes) + " tokens"
