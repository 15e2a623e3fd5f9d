"""Reads the splits of a corpus, prepares them and turns them into ids, with the vocabularies and a report for people."""

import numpy as np

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.preparation.streaming import Steps
from one_layer.data.reader import ParallelReader
from one_layer.data.sources.pairs import Pairs, Source
from one_layer.data.sources.plain_parts import PlainParts
from one_layer.data.text.assets import TextAssets, Vocabularies
from one_layer.data.text.preprocess import BPE_MARK
from one_layer.data.text.vocabulary import SPACE, SPECIALS, unknown_marked
from one_layer.data.tokens import TokenStore
from one_layer.data.training_text import assets_of, check_files, encoded, prepare
from one_layer.system.errors import UserError

PARALLEL = ParallelReader()
_MARKED = 0.1  # the share of marked tokens from which a vocabulary is one of subwords


def load(
    config: DataConfig,
    vocabularies: Vocabularies | None = None,
    codes: str | None = None,
    reader: ParallelReader = PARALLEL,
    steps: Steps | None = None,
) -> Corpus:
    """Reads the text of all splits, prepares it and turns it into ids, with `reader`.

    `vocabularies` (source, target), `codes` and `steps` are those saved with a run; if they are not given, they are made from the training
    text and the config.
    Training pairs that the reader rejects are left out and counted in the report. Validation and test sets keep every pair, so that
    hypotheses match the files line by line.

    Raises: UserError for files that cannot be used, and if no training pair is left.
    """
    if config.bpe_kind == "byte-level" and codes is None and not config.bpe_codes:  # only a stream of text learns them
        raise UserError(
            "data.bpe_kind=byte-level needs merges that were learned before: give their file as data.bpe_codes, or a run that has "
            "them as train.init_from"
        )
    check_files(config, vocabularies, codes)
    source = reader.open(config)
    source.files(source.train)  # raises for missing files now, before the rest is read
    raw = {name: source.read(name) for name in dict.fromkeys((source.valid, *source.tests))}
    prepared = prepare(config, reader, source, vocabularies, codes)
    train = Split(prepared.source, prepared.target)
    assets = assets_of(config, reader, prepared.assets.vocabularies, prepared.assets.codes, steps)
    splits = {name: _scored_split(config, reader, assets, pairs, source.ids(name)) for name, pairs in raw.items()}
    valid, tests = splits[source.valid], {name: splits[name] for name in source.tests}
    scored = {"valid": valid, **tests}
    report = [*source.report.values(), *prepared.report, *_report(config, reader, assets, scored)]
    report.append(f"{reader.scored} that the training text has too: {_known(train, scored)}")
    return Corpus(**vars(assets), train=train, valid=valid, tests=tests, report=report)


def load_scored(
    config: DataConfig,
    vocabularies: Vocabularies,
    codes: str | None,
    wanted: str = "",
    reader: ParallelReader = PARALLEL,
    steps: Steps | None = None,
) -> Corpus:
    """Reads the splits to be scored, with a run's vocabularies, codes and steps. The training text is not read.

    `wanted`: `valid`, the name of a test set, or `test` for all test sets; empty for all of these. Other splits are not read.

    Raises: UserError for a split that the config does not have, and for files that cannot be used.
    """
    if (config.bpe_merges or config.bpe_codes) and codes is None:
        raise UserError("the BPE codes of the run are needed: they are a part of it, and are never read from elsewhere")
    source = reader.open(config)
    names = scored_names(source, wanted)
    assets = assets_of(config, reader, vocabularies, codes, steps)
    raw = {part: source.read(part) for part in dict.fromkeys(names.values())}
    splits = {name: _scored_split(config, reader, assets, raw[part], source.ids(part)) for name, part in names.items()}
    report = [*source.report.values(), *_report(config, reader, assets, splits)]
    tests = {name: splits[name] for name in source.tests if name in splits}
    return Corpus(**vars(assets), train=Split(), valid=splits.get("valid", Split()), tests=tests, report=report)


def scored_names(source: Source | PlainParts, wanted: str) -> dict[str, str]:
    """The source's names of the wanted splits, by the names that users give. Raises: UserError for a name that no split has."""
    tests = {name: name for name in source.tests}
    known = {"valid": source.valid, **tests}
    if not wanted:
        return known
    if wanted == "test" and tests:  # also where one of several has this name
        return tests
    if wanted in known:
        return {wanted: known[wanted]}
    every = " (and test: all test sets)" if tests else ", and no test set: data.tests is empty"
    raise UserError(f"--split={wanted!r} is unknown; this run has {', '.join(known)}{every}")


def _scored_split(
    config: DataConfig,
    reader: ParallelReader,
    assets: TextAssets,
    raw: Pairs,
    ids: tuple[TokenStore, TokenStore] | None,
) -> Split:
    """A validation or test split, with the reference texts. `ids`: its sentences, where the source has ids and no text."""
    steps = assets.steps
    pairs = raw if config.is_prepared else (steps[0].apply(raw[0]), steps[1].apply(raw[1]))
    references = list(map(unknown_marked, pairs[1]))
    reference = steps[1].join(references)
    plain = reader.plain_reference(config, raw, references, steps[1])
    source, target = map(reader.cut, ids or encoded(config, reader, assets, pairs))
    return Split(source, target, raw[0], reference, plain)


def _report(config: DataConfig, reader: ParallelReader, assets: TextAssets, splits: dict[str, Split]) -> list[str]:
    """Lines for people about the scored splits and the vocabularies."""
    lines = []
    for name, split in splits.items():
        sizes = reader.describe(assets, name, split.source, split.target)
        lines.append("; ".join(filter(None, [sizes, reader.describe_cut(config, split.source, split.target)])))
    source, target = assets.vocabularies
    if source is target:
        lines.append(f"vocabulary: {len(source):,} tokens, joined")
    else:
        ours, theirs = assets.languages
        lines.append(f"vocabularies: {ours} {len(source):,}, {theirs} {len(target):,} tokens")
    return lines + _remarks(assets)


def _known(train: Split, scored: dict[str, Split]) -> str:
    seen = {name: np.count_nonzero(split.source.within(train.source)) for name, split in scored.items()}
    return ", ".join(f"{name} {count:,} of {len(scored[name]):,}" for name, count in seen.items())


def _remarks(assets: TextAssets) -> list[str]:
    """Lines for people about subwords that nobody joins."""
    target, found = assets.target_preprocessing, []
    tokens = assets.target_vocabulary.tokens[len(SPECIALS) :]
    marked = {
        "sentencepiece": [token for token in tokens if token.startswith(SPACE)],
        "subword-nmt,moses": [token for token in tokens if token.endswith(BPE_MARK)],
    }
    for inverse, pieces in marked.items():
        if len(pieces) > _MARKED * len(tokens) and inverse.split(",")[0] not in target.undone:
            found.append(
                f"{len(pieces):,} of {len(tokens):,} target tokens are marked as subwords ({pieces[0]!r:.60} is one), but translations "
                f"are written and scored as they are: data.undo={inverse} would join them"
            )
    return found
