"""A trained translation model: it translates raw lines and scores splits."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from one_layer.data.corpus import Split
from one_layer.data.reader import LONGEST, cut
from one_layer.data.text.languages import code, sacrebleu_tokenizer
from one_layer.data.text.preprocess import Preprocessing
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.generate import Generator, Hypothesis

log = logging.getLogger(__name__)


class TranslationModel(TrainedModel):
    """Translates by beam search with its settings. A program is compiled once for each padded shape, and kept."""

    task = "translation"
    verb = "translate"
    main_score = "bleu_tokenized"

    def translate(self, lines: Iterable[str]) -> list[str]:
        """The translations of raw lines, in order, as plain text; an empty line stays empty.

        The preprocessing of the training text (Moses, lower-casing, BPE) is applied to the lines and undone on the translations. A line of
        more than 1024 tokens is cut, and the number of such lines is logged.

        Raises: UserError for anything but a list of texts.
        """
        lines = self.given(lines)
        prepared = self.assets.source_preprocessing.apply(lines)
        # A line of only control characters becomes empty when it is prepared, or has no text to begin with.
        full = [place for place, line in enumerate(prepared) if line.strip() and lines[place].strip()]
        plain = self.assets.target_preprocessing.undo(self.lines_of_tokens([prepared[place] for place in full]))
        translated = [""] * len(lines)
        for place, line in zip(full, plain, strict=True):
            translated[place] = line
        return translated

    def lines_of_tokens(self, lines: list[str]) -> list[str]:
        """The same from tokens to tokens: the lines are prepared as the model's training text was, and so are their translations.

        A line without tokens stays empty.
        """
        translated = [""] * len(lines)
        full = [place for place, line in enumerate(lines) if line.strip()]
        whole = [self.assets.source_vocabulary.encode(lines[place]) for place in full]
        if long := sum(len(ids) > LONGEST for ids in whole):
            log.warning("%d of %d lines have more than %d tokens; only these are translated", long, len(lines), LONGEST)
        if full:
            hypotheses = self._generator(self.prepared, [cut(ids) for ids in whole], "translating")
            for place, line in zip(full, self._subwords(hypotheses), strict=True):
                translated[place] = line
        return translated

    lines = translate

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The BLEU scores, whose names say which form they are, and the hypotheses: `plain` (detokenised) and `tokenized` (BPE joined)."""
        source, target = self.assets.source_preprocessing, self.assets.target_preprocessing
        hypotheses = self._generator(self.prepared, split.source, title)
        subwords = self._subwords(hypotheses)
        plain = target.undo(subwords)
        scores = bleu_scores(target, subwords, split, self.settings.tokenize)
        scores["tokens"] = sum(len(h.tokens) for h in hypotheses)
        compounds = f", compounds split {scores['bleu_compound_split']:.2f}" if "bleu_compound_split" in scores else ""
        sacre = f"sacreBLEU {scores['bleu_sacre']:.2f} {scores['signature']}"
        log.info("%s: %s%s; %s", title, scores["details_tokenized"], compounds, sacre)
        # Lines that were prepared before they were read have BPE's marks; in others, a mark is text.
        shown = source.join(split.source_text) if self.data.is_prepared else split.source_text
        for place in range(0, len(plain), -(-len(plain) // 3)):
            log.info("  source      %.500s", shown[place])
            log.info("  reference   %.500s", split.reference_detokenized[place])
            log.info("  translation %.500s", plain[place])
        return scores, {"plain": plain, "tokenized": target.join(subwords)}

    @cached_property
    def _generator(self) -> Generator:
        return Generator(self.config, self.settings)

    def _subwords(self, hypotheses: list[Hypothesis]) -> list[str]:
        return [self.assets.target_vocabulary.decode(hypothesis.tokens) for hypothesis in hypotheses]


def bleu_scores(target: Preprocessing, subwords: list[str], split: Split, tokenize: str = "") -> dict[str, Any]:
    """All BLEU scores of hypotheses (lines of the model's tokens); each name says which form it is.

    If the model's text is lower-cased, sacreBLEU ignores case, and its signature says so. German, the target of WMT14 en-de, is also
    scored with compounds split. `tokenize`: the name of sacreBLEU's tokenizer; empty: the target language decides.
    """
    lines, references = bleu.bleu_tokens(target, target.join(subwords)), bleu.bleu_tokens(target, split.reference)
    tokenize = tokenize or sacrebleu_tokenizer(target.language)
    sacre, signature = bleu.bleu_sacre(target.undo(subwords), split.reference_detokenized, target.lowercase, tokenize)
    scores: dict[str, Any] = {
        "bleu_tokenized": bleu.bleu_tokenized(lines, references),
        "bleu_sacre": sacre,
        "signature": signature,
        "sentences": len(lines),
        "details_tokenized": bleu.describe_tokenized(lines, references)
        + ("" if target.spaced else ", where each character is a token"),
    }
    if code(target.language) == "de":
        scores["bleu_compound_split"] = bleu.bleu_compound_split(lines, references)
    return scores
