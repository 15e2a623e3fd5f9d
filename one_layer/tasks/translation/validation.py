"""Validation of a translation model during training."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from one_layer.data.batches import evaluation_batches
from one_layer.data.corpus import Corpus
from one_layer.data.text.languages import sacrebleu_tokenizer
from one_layer.models import ModelConfig
from one_layer.tasks.model import prepared
from one_layer.tasks.summing import nll_program, summed
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.generate import Generator
from one_layer.tasks.translation.settings import SearchSettings

log = logging.getLogger(__name__)

Variables = dict[str, Any]


class TranslationValidator:
    """Measures negative log-likelihood per token and, unless `valid_beam` is 0 or BLEU cannot measure the text, tokenised BLEU."""

    def __init__(self, model: ModelConfig, settings: SearchSettings, corpus: Corpus) -> None:
        self._model, self._corpus, self._settings = model, corpus, settings
        self._sums = nll_program(model, ("source", "target_in"))
        target = corpus.target_preprocessing
        self._reference = bleu.bleu_tokens(target, corpus.valid.reference)
        measured = bleu.can_measure(self._reference)
        if settings.valid_beam and not measured:
            log.warning("valid: %s; so it is not computed", bleu.UNMEASURED)
        wanted = settings.valid_beam and measured
        self._generator = Generator(model, settings, settings.valid_beam) if wanted else None
        # A tokenizer that needs a package is missed now, and not after hours of training.
        bleu.sacrebleu_metric(settings.tokenize or sacrebleu_tokenizer(target.language))

    def __call__(
        self, params: Variables, fixed: dict[str, Variables], between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """`valid/nll` in nats per token, and `valid/bleu`. `between` is called before every batch."""
        variables = prepared(self._model, {"params": params, **fixed})
        valid, settings = self._corpus.valid, self._settings
        batches = evaluation_batches(valid.source, valid.target, settings.max_tokens, settings.buckets)
        nll, tokens = summed(self._sums, variables, batches, between).tolist()
        values = {"valid/nll": nll / tokens}
        if self._generator and math.isfinite(nll):  # a diverged model cannot translate
            hypotheses = self._generator(variables, valid.sentences, "valid", between)
            subwords = [self._corpus.target_vocabulary.decode(each.tokens) for each in hypotheses]
            target = self._corpus.target_preprocessing
            lines = bleu.bleu_tokens(target, target.join(subwords))
            values["valid/bleu"] = bleu.bleu_tokenized(lines, self._reference)
        return values
