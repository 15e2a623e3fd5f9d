"""A trained translation model: raw lines in, translations out, and its scores."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from one_layer.data.corpus import Split
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.generate import Generator, Hypothesis

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TranslationModel(TrainedModel):
    """Translates by beam search, as its settings say. Programs are compiled once for each padded shape and kept."""

    verb = "translate"

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translations of raw lines, in order, as plain text; an empty line stays empty.

        What was done to the training text (Moses, lower-casing, BPE) is done to the lines and undone on the translations.
        """
        prepared = self.assets.source_preprocessing.apply(lines)
        # Control characters alone leave nothing either, or are no text.
        full = [place for place, line in enumerate(prepared) if line.strip() and lines[place].strip()]
        sentences = [self.assets.source_vocabulary.encode(prepared[place]) for place in full]
        translated = [""] * len(lines)
        if not sentences:
            return translated
        hypotheses = self._generator(self.prepared, sentences, "translating")
        plain = self.assets.target_preprocessing.undo(self._subwords(hypotheses))
        for place, line in zip(full, plain, strict=True):
            translated[place] = line
        return translated

    lines = translate

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """BLEU, under names that say which; the hypotheses are `plain` (detokenised) and `tokenized` (BPE joined)."""
        source, target = self.assets.source_preprocessing, self.assets.target_preprocessing
        hypotheses = self._generator(self.prepared, split.source, title)
        subwords = self._subwords(hypotheses)
        lines, plain = target.join(subwords), target.undo(subwords)
        sacre, signature = bleu.bleu_sacre(plain, split.reference_detokenized)
        scores = {
            "bleu_tokenized": bleu.bleu_tokenized(lines, split.reference),
            "bleu_sacre": sacre,
            "signature": signature,
            "sentences": len(lines),
            "tokens": sum(len(h.tokens) for h in hypotheses),
            "details_tokenized": bleu.describe_tokenized(lines, split.reference),
        }
        log.info("%s: %s; sacreBLEU %.2f %s", title, scores["details_tokenized"], sacre, signature)
        for place in range(0, len(plain), -(-len(plain) // 3)):
            log.info("  source      %s", source.join([split.source_text[place]])[0])
            log.info("  reference   %s", split.reference_detokenized[place])
            log.info("  translation %s", plain[place])
        return scores, {"plain": plain, "tokenized": lines}

    @cached_property
    def _generator(self) -> Generator:
        return Generator(self.config, self.settings)

    def _subwords(self, hypotheses: list[Hypothesis]) -> list[str]:
        return [self.assets.target_vocabulary.decode(hypothesis.tokens) for hypothesis in hypotheses]
