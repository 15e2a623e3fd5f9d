"""How lines become ids. A task overrides the methods of `ParallelReader` to read its corpus in its own way."""

from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np
from jaxtyping import Bool, Int32

from one_layer.data.config import DataConfig
from one_layer.data.sources.composed import HeldOut, Several, Taught
from one_layer.data.sources.pairs import ManyPairs, Pairs, Source, open_source
from one_layer.data.special_tokens import UNK
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import METASPACE, Preprocessing
from one_layer.data.text.vocabulary import BYTES, Vocabulary, read_vocabulary_json
from one_layer.data.tokens import LONGEST, TokenStore, cut

Encode = Callable[[str], Int32[np.ndarray, " length"]]


class ParallelReader:
    """Reads pairs of lines in two languages. A task with another corpus overrides the methods where it differs."""

    unit, scored = "pairs", "sources"  # what reports count, and what of it a model reads to be scored
    longest: int | None = LONGEST  # tokens of a scored line, for each side; longer ones are cut

    def open(self, config: DataConfig) -> Source:
        """The source of the lines. Raises: UserError for files that cannot be used."""
        opened = [(open_source(each), each) for each in config.corpora()]
        corpora = [HeldOut(source, each) if each.held_out else source for source, each in opened]
        source = corpora[0] if len(corpora) == 1 else Several(corpora, config)
        return Taught(source, config) if config.translations else source

    def preprocessing(self, config: DataConfig, codes: str | None) -> tuple[Preprocessing, Preprocessing]:
        """The preprocessing of raw lines, for the source and the target; `codes`: the text of the BPE codes file."""
        source, target = (config.preprocessing(codes, language) for language in config.languages)
        return source, target

    def vocabularies(self, config: DataConfig, train: ManyPairs) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of prepared training lines (source, target); one object if they are joined."""
        if config.joined_vocabulary:
            joined = self.given_vocabulary(config) or self.built(config, chain(*train))
            return joined, joined
        return self.given_vocabulary(config) or self.built(config, train[0]), self.built(config, train[1])

    def built(self, config: DataConfig, lines: Iterable[str]) -> Vocabulary:
        """The vocabulary of prepared lines. With pieces that give every text back, it has a token for each byte."""
        return Vocabulary.build(lines, BYTES if config.new_lines_kind == METASPACE else ())

    def given_vocabulary(self, config: DataConfig) -> Vocabulary | None:
        """The vocabulary of the file `data.vocabulary`; None if the config names no file."""
        return read_vocabulary_json(config.vocabulary) if config.vocabulary else None

    def check_vocabularies(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        """Raises: UserError for vocabularies that do not fit the config."""

    def encoders(self, config: DataConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> tuple[Encode, Encode]:
        """The functions that turn a prepared line into ids, for the source and the target."""
        return vocabularies[0].encode, vocabularies[1].encode

    def fit(self, config: DataConfig, source: TokenStore, target: TokenStore) -> tuple[Bool[np.ndarray, " pairs"], str]:
        """Which training pairs can be used, and a phrase for people about those that cannot."""
        shorter, longer = np.minimum(source.lengths, target.lengths), np.maximum(source.lengths, target.lengths)
        empty, long = shorter <= 1, (shorter > 1) & (longer > config.max_length)
        return ~(empty | long), (
            f"left out: {empty.sum():,} pairs with an empty side, {long.sum():,} with more than {config.max_length} tokens on a side "
            "(with the end of the sentence)"
        )

    def cut(self, side: TokenStore) -> TokenStore:
        """The lines of a scored side, those with more than `longest` tokens cut to that."""
        if self.longest is None or not (side.lengths > self.longest).any():
            return side
        return TokenStore.of([cut(ids, self.longest) for ids in side])

    def describe_cut(self, config: DataConfig, source: TokenStore, target: TokenStore) -> str:
        """A phrase for people about the lines of a scored split that are as long as those that are cut; empty if none is."""
        count = sum(int((side.lengths == self.longest).sum()) for side in (source, target))
        return f"{count:,} lines have {self.longest:,} tokens: if any was longer, it was cut to that" if count else ""

    def plain_reference(self, config: DataConfig, raw: Pairs, prepared: list[str], target: Preprocessing) -> list[str]:
        """The plain target text of a scored split: the lines of the file or, where they were prepared elsewhere, what undoes that.

        It keeps its case if possible: sacreBLEU is told whether to ignore case, and its signature says so.
        """
        return target.undo(prepared) if config.is_prepared or target.inverse else raw[1]

    def describe(self, assets: TextAssets, name: str, source: TokenStore, target: TokenStore) -> str:
        """A line for people about the size of a split."""
        return self._described(name, zip(assets.languages, (source, target), strict=True))

    def _described(self, name: str, sides: Iterable[tuple[str, TokenStore]]) -> str:
        """A line such as `train: 3 pairs, 12 de tokens (0.00 % unknown) and ...`; `sides` are languages with their ids."""
        phrases, count = [], 0
        for language, side in sides:
            count, tokens = len(side), int(side.lengths.sum()) - len(side)
            unknown = sum(int(np.count_nonzero(ids == UNK)) for ids in side.chunks())
            phrases.append(f"{tokens:,} {language} tokens ({100 * unknown / max(tokens, 1):.2f} % unknown)")
        return f"{name}: {count:,} {self.unit}, {' and '.join(phrases)}"
