"""The training text as ids: from a store of an earlier run, from fairseq's files, or prepared from lines."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from one_layer.data.config import DataConfig
from one_layer.data.preparation import streaming
from one_layer.data.preparation.store import Prepared, stored
from one_layer.data.preparation.streaming import Steps, shown
from one_layer.data.reader import ParallelReader
from one_layer.data.sources.pairs import FairseqFolder, ManyPairs, Source
from one_layer.data.sources.table import table_kind
from one_layer.data.text import metaspace
from one_layer.data.text.assets import TextAssets, Vocabularies
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.languages import code
from one_layer.data.text.preprocess import METASPACE, read_codes
from one_layer.data.text.vocabulary import read_vocabulary_json
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.system.errors import UserError

_FORMAT = 2  # of two texts the longer one is cut first
_TOOLS = ("sacremoses", "subword-nmt", "tokenizers")


def prepare(
    config: DataConfig, reader: ParallelReader, source: Source, vocabularies: Vocabularies | None, codes: str | None
) -> Prepared:
    """The training pairs: from the store if it has them, else from the source.

    `vocabularies` (source, target) and `codes` are those saved with a run; None where they are to be made from this text.

    Raises: UserError for text that cannot be used, and if no pair is left.
    """
    if isinstance(source, FairseqFolder):
        return _from_ids(config, reader, source, vocabularies)

    def make() -> Prepared:
        return _from_text(config, reader, source, vocabularies, codes)

    if not config.store:
        return make()
    files = source.files(source.train)
    given = None if vocabularies is None else (vocabularies, codes)
    options = _options(config, files) | given_files(config, vocabularies, codes)
    return stored(config.store, options, files, given, make)


def _options(config: DataConfig, files: list[Path]) -> dict[str, Any]:
    """Everything but the bytes of the `files` that decides the ids of the training text."""
    names = ["tokenize", "normalize", "split_hyphens", "lowercase", "bpe_merges", "prepared"]
    names += ["bpe_kind", "joined_vocabulary", "max_length", "labels", "columns", "delimiter", "held_out"]
    options: dict[str, Any] = {name: getattr(config, name) for name in names}
    steps = config.tokenize or config.lowercase or config.bpe_codes or config.bpe_kind == METASPACE
    options["prepared"] |= bool(config.undo and steps)
    if config.source == "tfds":
        options["split"] = config.train  # a slice of a split has the same files as the whole split
    if config.columns:  # the name of a table says how it is read
        options["tables"] = [table_kind(path) for path in files]
    if config.mix:
        options["mix"] = config.mix
    if config.held_out:
        by = [*["by lower case"] * config.lowercase, *["by words"] * config.tokenize]
        options["parts_held_out"] = [*config.parts_held_out, *by]
    if config.translations:
        options["teacher_mix"] = config.teacher_mix
    languages = config.languages
    rules = [*map(code, languages)] if config.tokenize else []
    tools = [version(tool) for tool in _TOOLS]
    return {"format": _FORMAT, **options, "languages": languages, "rules": rules, "tools": tools}


def given_files(config: DataConfig, vocabularies: Vocabularies | None, codes: str | None) -> dict[str, str | None]:
    """What files besides the text decide its ids: merges and a vocabulary, those of a run (`check_files`) where it goes on without them."""
    found = {"codes": codes_of(config, codes) if config.bpe_codes else None}
    if config.vocabulary:
        given = vocabularies[0] if vocabularies else read_vocabulary_json(config.vocabulary)
        found["vocabulary"] = given.fingerprint
    return found


def _from_text(
    config: DataConfig, reader: ParallelReader, source: Source, vocabularies: Vocabularies | None, codes: str | None
) -> Prepared:
    """Reads, prepares and encodes the training text, line after line: intermediate data goes to unnamed temporary files."""
    pairs = source.lines(source.train)
    # This first pass finds unreadable text before hours of work.
    count, others = (sum(1 for _ in shown(side, "reading")) for side in pairs)
    if count != others:
        source.read(source.train)  # raises the error about the counts
    if not count:
        hint = f"more text, or a smaller data.held_out than {config.held_out:g}" if config.held_out else "at least one"
        raise UserError(f"there are no {reader.unit} to train on in the {config.describe('train')}; give {hint}")
    codes = codes_of(config, codes)
    if not config.is_prepared and config.bpe_merges and codes is None:
        pairs, counts = streaming.words(pairs, count, reader.preprocessing(config, None))
        learn = metaspace.learn if config.bpe_kind == METASPACE else learn_bpe_from_counts
        codes = learn(counts, config.bpe_merges)
        pairs = streaming.subwords(pairs, count, reader.preprocessing(config, codes))
    elif not config.is_prepared:
        pairs = streaming.applied(pairs, count, reader.preprocessing(config, codes))
    if vocabularies is None:
        vocabularies = reader.vocabularies(config, _shown(pairs, "counting tokens", count))
    assets = assets_of(config, reader, vocabularies, codes)
    return _for_training(config, reader, assets, *encoded(config, reader, assets, _shown(pairs, "encoding", count)))


def _shown(pairs: ManyPairs, phase: str, count: int) -> ManyPairs:
    return shown(pairs[0], phase, count), shown(pairs[1], phase, count)


def _from_ids(
    config: DataConfig, reader: ParallelReader, source: FairseqFolder, vocabularies: Vocabularies | None
) -> Prepared:
    if vocabularies not in (None, source.vocabularies):
        raise UserError(
            f"the dictionaries in {config.directory} are not those that this run, or the run of train.init_from, began with; restore "
            "them, or train in a new --workdir without train.init_from"
        )
    assets = assets_of(config, reader, source.vocabularies, codes_of(config, None))
    return _for_training(config, reader, assets, *source.ids(source.train))


def assets_of(
    config: DataConfig,
    reader: ParallelReader,
    vocabularies: Vocabularies,
    codes: str | None,
    steps: Steps | None = None,
) -> TextAssets:
    """The vocabularies with the steps that prepare lines for them: `steps`, which a run keeps, or those of the config.

    Raises: UserError if they do not fit the task, or each other.
    """
    reader.check_vocabularies(config, vocabularies)
    return TextAssets(*vocabularies, *(steps or reader.preprocessing(config, codes)))


def codes_of(config: DataConfig, codes: str | None) -> str | None:
    """The BPE codes: those given, else those of the config's file, if there is one."""
    return read_codes(config.bpe_codes, config.bpe_kind) if codes is None and config.bpe_codes else codes


def check_files(config: DataConfig, vocabularies: Vocabularies | None, codes: str | None) -> None:
    """Raises: UserError if a file of codes or a vocabulary is there, but is not what a run began with (`vocabularies`, `codes`)."""
    saved = {"bpe_codes": codes, "vocabulary": vocabularies[0] if vocabularies else None}
    for name, own in saved.items():
        path = getattr(config, name)
        if own is None or not path or not Path(path).is_file():
            continue
        found = read_vocabulary_json(path) if name == "vocabulary" else codes_of(config, None)
        if found != own:
            raise UserError(
                f"data.{name}={path} is not the file that this run, or the run of train.init_from, began with; give that file, or train in "
                "a new --workdir without train.init_from"
            )


def encoded(
    config: DataConfig, reader: ParallelReader, assets: TextAssets, pairs: ManyPairs
) -> tuple[TokenStore, TokenStore]:
    """The ids of both sides of prepared pairs."""
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
