"""Reads a corpus of plain text as streams of ids, with its vocabulary and a report for people."""

import numpy as np
from tqdm import tqdm

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.loading import scored_names
from one_layer.data.preparation.store import Prepared, stored
from one_layer.data.sources.plain_parts import PlainParts
from one_layer.data.sources.plain_text import PlainText
from one_layer.data.special_tokens import UNK
from one_layer.data.stream import Stream, on_disk
from one_layer.data.text import byte_level
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.units import MASK, Bytes, Pieces, Unit, vocabulary_of
from one_layer.data.text.vocabulary import Vocabulary, read_vocabulary_json
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.data.training_text import check_files, codes_of, given_files
from one_layer.system.errors import UserError

_OPTIONS = ("source", "train", "unit", "bpe_merges", "held_out")  # what decides the ids of a training text


def load(config: DataConfig, saved: TextAssets | None = None, masked: bool = False) -> Corpus:
    """All parts of a corpus as streams of blocks of `data.block` tokens. `saved`: the vocabulary and merges of a resumed run.

    `masked`: for masked language models, whose text has eos in place of line ends, and whose vocabulary has `<mask>`.
    Raises: UserError for files that cannot be used, or that are not those that the run began with.
    """
    parts = PlainParts(config, lines=masked)
    names = dict.fromkeys((parts.valid, *parts.tests))
    texts = {name: parts.part(name) for name in names}  # a missing file is noticed before the long work
    text = parts.part(parts.train)
    train, assets = _training(config, text, saved, masked)
    of_unit = unit_of(config, assets)
    splits = {name: _split(config, of_unit, text, masked) for name, text in texts.items()}
    report = [_describe(of_unit, "train", train), f"files of train: {text}"]
    for name, split in splits.items():
        report += [_describe(of_unit, name, stream(split)), f"files of {name}: {texts[name]}"]
    report.append(f"vocabulary: {len(assets.source_vocabulary):,} tokens")
    tests = {name: splits[name] for name in parts.tests}
    return Corpus(**vars(assets), train=Split(train), valid=splits[parts.valid], tests=tests, report=report)


def load_scored(config: DataConfig, saved: TextAssets, wanted: str = "", masked: bool = False) -> Corpus:
    """The parts to be scored, without the training text. `wanted`: `valid`, a test set, `test` for all test sets; empty: all of these."""
    parts, of_unit = PlainParts(config, lines=masked), unit_of(config, saved)
    names = scored_names(parts, wanted)
    splits = {name: _split(config, of_unit, parts.part(part), masked) for name, part in names.items()}
    report = [_describe(of_unit, name, stream(split)) for name, split in splits.items()]
    tests = {name: splits[name] for name in parts.tests if name in splits}
    return Corpus(**vars(saved), train=Split(), valid=splits.get("valid", Split()), tests=tests, report=report)


def unit_of(config: DataConfig, assets: TextAssets) -> Unit:
    """The unit of a corpus, with its vocabulary."""
    vocabulary = assets.target_vocabulary
    return Pieces(vocabulary, assets.codes or "") if config.unit == "bpe" else Bytes(vocabulary)


def stream(split: Split) -> Stream:
    """The text of a split that this module made."""
    assert isinstance(split.source, Stream)
    return split.source


def _training(config: DataConfig, text: PlainText, saved: TextAssets | None, masked: bool) -> tuple[Stream, TextAssets]:
    """The training text: from the store if it has it, else from the files."""

    def make() -> Prepared:
        assets = saved or _assets(config, text, masked)
        tokens = _encoded(unit_of(config, assets), text, masked)
        return Prepared(assets, Stream(tokens, config.block), TokenStore.of([]), [])

    given = None if saved is None else (saved.vocabularies, saved.codes)
    if given is not None:
        check_files(config, *given)
    options = {"streamed": True, "masked": masked, **{name: getattr(config, name) for name in _OPTIONS}}
    options |= given_files(config, *(given or (None, None)))
    prepared = stored(config.store, options, text.files, given, make) if config.store else make()
    return Stream(prepared.source.tokens, config.block), saved or prepared.assets


def _assets(config: DataConfig, text: PlainText, masked: bool) -> TextAssets:
    """The vocabulary and the merges: given, or learned from the training text."""
    codes = codes_of(config, None)
    if config.unit == "bpe" and codes is None:
        codes = byte_level.learn(text.lines(), config.bpe_merges)
    given = read_vocabulary_json(config.vocabulary) if config.vocabulary else None
    vocabulary = given or vocabulary_of(codes)
    if given and codes:
        made = byte_level.pieces(codes)[len(byte_level.LETTERS) :]
        byte_level.check_pieces(made, given.tokens, f"data.bpe_codes and data.vocabulary={config.vocabulary}")
    if masked and MASK not in vocabulary.tokens:
        if given:
            raise UserError(
                f"{config.vocabulary} has no token {MASK}, which masked language models need; give a vocabulary that has it"
            )
        vocabulary = Vocabulary((*vocabulary.tokens, MASK))
    steps = Preprocessing(config.languages[0], codes=codes, bpe_kind="byte-level")
    return TextAssets(vocabulary, vocabulary, steps, steps)


def _split(config: DataConfig, of_unit: Unit, text: PlainText, masked: bool) -> Split:
    return Split(Stream(_encoded(of_unit, text, masked), config.block))


def _encoded(of_unit: Unit, text: PlainText, masked: bool) -> np.ndarray:
    """The ids of a text on disk. Raises: UserError for a text without a token."""
    pieces = of_unit.sentences(text) if masked else of_unit.encode(text)
    shown = iter(tqdm(pieces, "encoding", unit=" pieces", disable=None, leave=False))  # if standard error is a terminal
    tokens = on_disk(shown, fitting_type(len(of_unit.vocabulary)))
    if not len(tokens):
        raise UserError(f"{text} has no token in the part that is wanted; give more text, or another data.held_out")
    return tokens


def _describe(of_unit: Unit, name: str, text: Stream) -> str:
    """A line such as `train: 3,000 tokens, which are 12,000 bytes (0.00 % unknown)`."""
    types = len(of_unit.vocabulary)
    counts = sum((np.bincount(ids, minlength=types) for ids in text.chunks()), np.zeros(types, np.int64))
    total, measured = int(counts.sum()), int(np.dot(counts, of_unit.sizes))
    unknown = 100 * int(counts[UNK]) / total
    return f"{name}: {total:,} tokens, which are {measured:,} bytes ({unknown:.2f} % unknown)"
