"""Labelled texts as a corpus: the source is one text or two, and the target is a label."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int32

from one_layer.data.columns import column_names
from one_layer.data.config import DataConfig
from one_layer.data.reader import Encode, ParallelReader
from one_layer.data.sources.composed import HeldOut
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source, one_line
from one_layer.data.sources.table import Row, Table
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.special_tokens import UNK
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.data.tokens import TokenStore, cut_texts
from one_layer.system.errors import UserError
from one_layer.tasks.classification.glue import UNDECIDED, rows_of_file, rows_of_tfds
from one_layer.tasks.classification.labels import check_spelling, describe_counts, label_set, labels_of


class LabelledTexts(Source):
    """Labelled texts from files or TFDS. A source line is one text, or two texts separated by a tab; its target is the label's name.

    With `data.columns`, the files are tables with these columns; without, they are in the format of the task's publisher.
    """

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self._labels = label_set(config)

    def lines(self, name: str) -> Pairs:
        texts, labels, undecided = list[str](), list[str](), 0
        spellings: dict[str, str] = {}
        published, where = not self._config.columns, name if self._config.source == "tfds" else self.files(name)[0]
        for number, (*row, label) in self._rows(name):
            if published and label in UNDECIDED:
                undecided += 1
                continue
            texts.append("\t".join(one_line(text.replace("\t", " ")) for text in row))
            try:
                labels.append(self._labels.name(label))
                if not self._labels.labels:
                    check_spelling(label, spellings)
            except UserError as error:
                raise UserError(f"{where}, line {number}: {error}") from None
        if not labels:
            raise UserError(f"{where} has no labelled text; give a file with at least one line of them")
        left_out = f"; left out: {undecided:,} without an agreed label" if undecided else ""
        self.report[name] = f"{name}: {len(labels):,} texts ({describe_counts(labels)}){left_out}"
        return texts, labels

    def _rows(self, name: str) -> Iterable[Row]:
        config = self._config
        if config.source == "tfds":
            return rows_of_tfds(config.labels, config.tfds_name, name, config.directory)
        if config.columns:
            return Table(self.files(name)[0], column_names(config.columns), config.delimiter)
        return rows_of_file(config.labels, self.files(name)[0])

    def files(self, name: str) -> list[Path]:
        if self._config.source == "tfds":
            return TfdsRecords(self._config.tfds_name, self._config.directory).files(name)
        return [self._existing(name, Path(self._config.directory) / name)]


class LabelledReader(ParallelReader):
    """Long texts are cut to `data.max_length` tokens, of two the longer one first, and never left out.

    Labels have no language and a fixed vocabulary.
    """

    unit = scored = "texts"
    longest = None  # `data.max_length` cuts them

    def open(self, config: DataConfig) -> Source:
        source = LabelledTexts(config)
        return HeldOut(source, config) if config.held_out else source

    def preprocessing(self, config: DataConfig, codes: str | None) -> tuple[Preprocessing, Preprocessing]:
        return config.preprocessing(codes, config.source_language, pairs=True), Preprocessing(LABEL)

    def vocabularies(self, config: DataConfig, train: ManyPairs) -> tuple[Vocabulary, Vocabulary]:
        texts = self.preprocessing(config, None)[0].texts(train[0])
        labels = label_set(config).labels or self.labels(config, train[1])
        return self.given_vocabulary(config) or self.built(config, texts), Vocabulary(SPECIALS + labels)

    def labels(self, config: DataConfig, train: Iterable[str]) -> tuple[str, ...]:
        """The labels of a training text. Raises: UserError as `labels_of` does."""
        return labels_of(train, column_names(config.columns)[-1].isdecimal())

    def check_vocabularies(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        known = " ".join(label_set(config).labels)
        names = " ".join(vocabularies[1].tokens[len(SPECIALS) :])
        if known and names != known:
            raise UserError(
                f"the labels of this model are {names:.200}, but {config.labels} has {known}; restore the run or ticket as it was written"
            )

    def encoders(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> tuple[Encode, Encode]:
        source, labels = vocabularies
        longest = config.max_length
        return lambda line: cut_texts(source.encode_texts(line), longest), partial(_encode_label, labels, config)

    def fit(self, config: DataConfig, source: TokenStore, target: TokenStore) -> tuple[Bool[np.ndarray, " pairs"], str]:
        none = f"0 texts have {config.max_length} tokens, the most that data.max_length allows"
        return np.ones(len(source), bool), self.describe_cut(config, source, target) or none

    def describe_cut(self, config: DataConfig, source: TokenStore, target: TokenStore) -> str:
        full = int((source.lengths == config.max_length).sum())
        if not full:
            return ""
        first = ", of two texts the longer one first" if label_set(config).texts == 2 else ""
        return (
            f"{full:,} of {len(source):,} texts have {config.max_length} tokens, the most that data.max_length allows; if any was "
            f"longer, it was cut{first}"
        )

    def plain_reference(self, config: DataConfig, raw: Pairs, prepared: list[str], target: Preprocessing) -> list[str]:
        return raw[1]

    def describe(self, assets: TextAssets, name: str, source: TokenStore, target: TokenStore) -> str:
        return self._described(name, [(assets.languages[0], source)])


def _encode_label(labels: Vocabulary, config: DataConfig, label: str) -> Int32[np.ndarray, " length"]:
    ids = labels.encode(label)
    if ids[0] == UNK:
        known = ", ".join(labels.tokens[len(SPECIALS) :])
        why = f" (data.held_out={config.held_out:g} may have taken all of its texts out)" if config.held_out else ""
        text, mend = "the training text", "list the labels in data.labels"
        if config.teacher:  # a run has the labels of its teacher
            text, mend = f"{text} of data.teacher={config.teacher}", "give a teacher that has it"
        raise UserError(
            f"the label {label!r:.60} does not occur in {text}, which has {known:.200}{why}; correct the label, or {mend}"
        )
    return ids
