"""Labelled texts as a corpus: the source is one text or two, and the target is a label."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from one_layer.data.config import DataConfig
from one_layer.data.reader import Encode, ParallelReader, describe_sides
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.lines import existing_file
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.data.tokens import TokenStore
from one_layer.errors import UserError
from one_layer.tasks.classification.glue import read_examples, read_tfds_examples, task_named


class LabelledTexts(Source):
    """Labelled texts from files or TFDS. A source line is one text, or two texts separated by a tab; its target is the label's name."""

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self._task = task_named(config.labels)

    def read(self, name: str) -> Pairs:
        config = self._config
        if config.source == "tfds":
            found = read_tfds_examples(self._task, config.tfds_name, name, config.directory)
        else:
            found = read_examples(self._task, self.files(name)[0])
        if not len(found):
            raise UserError(f"{name} has no labelled text; {found.describe()}")
        self.report[name] = f"{name}: {found.describe()}"
        texts = [
            "\t".join(map(_one_line, (each.first, each.second)[: len(self._task.columns)])) for each in found.examples
        ]
        return texts, [self._task.labels[each.label] for each in found.examples]

    def files(self, name: str) -> list[Path]:
        if self._config.source == "tfds":
            return TfdsRecords(self._config.tfds_name, self._config.directory).files(name)
        return [existing_file(Path(self._config.directory) / name)]


def _one_line(text: str) -> str:
    return " ".join(text.replace("\t", " ").split("\n"))


class LabelledReader(ParallelReader):
    """Long texts are cut to `data.max_length` tokens, never left out. Labels have no language and a fixed vocabulary."""

    unit = "texts"
    longest = None  # `data.max_length` cuts them

    def open(self, config: DataConfig) -> Source:
        return LabelledTexts(config)

    def languages(self, config: DataConfig) -> tuple[str, str]:
        return config.source_language, LABEL

    def preprocessing(self, config: DataConfig, codes: str | None) -> tuple[Preprocessing, Preprocessing]:
        return config.preprocessing(codes, config.source_language, pairs=True), Preprocessing(LABEL)

    def vocabularies(self, config: DataConfig, train: ManyPairs) -> tuple[Vocabulary, Vocabulary]:
        texts = self.preprocessing(config, None)[0].texts(train[0])
        return self.given_vocabulary(config) or Vocabulary.build(texts, config.min_count), _labels(config)

    def check_vocabularies(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        names, known = (" ".join(each.tokens[len(SPECIALS) :]) for each in (vocabularies[1], _labels(config)))
        if names != known:
            raise UserError(
                f"the labels of this model are {names:.200}, but {config.labels} has {known}; restore the run or ticket as it was written"
            )

    def encoders(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> tuple[Encode, Encode]:
        source, labels = vocabularies
        return partial(source.encode_texts, longest=config.max_length), labels.encode

    def fit(self, config: DataConfig, source: TokenStore, target: TokenStore) -> tuple[Bool[np.ndarray, " pairs"], str]:
        full = np.count_nonzero(source.lengths == config.max_length)
        return np.ones(len(source), bool), (
            f"{full:,} texts have {config.max_length} tokens, the most that data.max_length allows; longer texts were cut"
        )

    def plain_reference(self, config: DataConfig, raw: Pairs, prepared: list[str], target: Preprocessing) -> list[str]:
        return raw[1]

    def describe(self, assets: TextAssets, name: str, source: TokenStore, target: TokenStore) -> str:
        return describe_sides(name, self.unit, {assets.languages[0]: source})


def _labels(config: DataConfig) -> Vocabulary:
    return Vocabulary(SPECIALS + task_named(config.labels).labels)
