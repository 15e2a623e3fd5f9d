"""How lines become ids: what a task may do in its own way when a corpus is read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
from jaxtyping import Bool, Int32

from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source, open_source
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.text.vocabulary_json import read_vocabulary_json
from one_layer.data.tokens import TokenStore
from one_layer.special_tokens import UNK

Encode = Callable[[str], Int32[np.ndarray, " length"]]


class ParallelReader:
    """Reads pairs of lines in two languages. A task with another corpus overrides the methods where it differs."""

    unit = "pairs"  # what reports count

    def open(self, config: DataConfig) -> Source:
        """Where the lines come from. Raises: UserError for files that cannot be used."""
        return open_source(config)

    def languages(self, config: DataConfig) -> tuple[str, str]:
        """(source, target)."""
        return config.languages

    def preprocessing(self, config: DataConfig, codes: str | None) -> tuple[Preprocessing, Preprocessing]:
        """What is done to raw lines of the source and of the target; `codes`: the text of the BPE codes file."""
        source, target = (config.preprocessing(codes, language) for language in self.languages(config))
        return source, target

    def vocabularies(self, config: DataConfig, train: ManyPairs) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of prepared training lines, source and target; one object where they are joined."""
        if config.joined_vocabulary:
            joined = self.given_vocabulary(config) or Vocabulary.build(chain(*train), config.min_count)
            return joined, joined
        source = self.given_vocabulary(config) or Vocabulary.build(train[0], config.min_count)
        return source, Vocabulary.build(train[1], config.min_count)

    def given_vocabulary(self, config: DataConfig) -> Vocabulary | None:
        """That of the file `data.vocabulary`, if the config names one."""
        return read_vocabulary_json(config.vocabulary) if config.vocabulary else None

    def check_vocabularies(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        """Raises: UserError for vocabularies that the config cannot have."""

    def encoders(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> tuple[Encode, Encode]:
        """What makes ids of a prepared line of the source and of the target."""
        return vocabularies[0].encode, vocabularies[1].encode

    def fit(self, config: DataConfig, source: TokenStore, target: TokenStore) -> tuple[Bool[np.ndarray, " pairs"], str]:
        """Which training pairs can be used, and a phrase for people on those that cannot."""
        shorter, longer = np.minimum(source.lengths, target.lengths), np.maximum(source.lengths, target.lengths)
        empty, long = shorter <= 1, (shorter > 1) & (longer > config.max_length)
        return ~(empty | long), (
            f"left out: {empty.sum():,} pairs with an empty side, {long.sum():,} with more than {config.max_length} tokens on a side"
        )

    def plain_reference(self, config: DataConfig, raw: Pairs, prepared: list[str], target: Preprocessing) -> list[str]:
        """The plain text of the target of a scored part, from its lines as they were read and as they were prepared."""
        if config.tokenize and not config.is_prepared:
            # A lower-cased model is compared with lower-cased text: sacreBLEU itself minds case.
            return [line.lower() for line in raw[1]] if config.lowercase else raw[1]
        return target.undo(prepared)

    def describe(self, assets: TextAssets, name: str, source: TokenStore, target: TokenStore) -> str:
        """A line for people on the size of a part."""
        return describe_sides(name, self.unit, dict(zip(assets.languages, (source, target), strict=True)))


def describe_sides(name: str, unit: str, sides: dict[str, TokenStore]) -> str:
    """`train: 3 pairs, 12 de tokens (0.00 % unknown) and ...`, with the sides by their languages."""
    phrases, count = [], 0
    for language, side in sides.items():
        count, tokens = len(side), int(side.lengths.sum()) - len(side)
        unknown = sum(int(np.count_nonzero(ids == UNK)) for ids in side.chunks())
        phrases.append(f"{tokens:,} {language} tokens ({100 * unknown / max(tokens, 1):.2f} % unknown)")
    return f"{name}: {count:,} {unit}, {' and '.join(phrases)}"
