"""What translations score: the validation set's while training, and any split's, with what BLEU it is always said."""

from __future__ import annotations

import logging
import math
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from one_layer.data import corpus as corpora
from one_layer.data.batches import evaluation_batches
from one_layer.data.text.preprocess import Preprocessing
from one_layer.models import ModelConfig, build
from one_layer.runs.settings import RunConfig
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.generate import Generator, Hypothesis, prepared

log = logging.getLogger(__name__)

Variables = dict[str, Any]


class Validator:
    """Negative log-likelihood a token and, unless `evaluation.valid_beam` is 0, tokenised BLEU of the validation set."""

    def __init__(self, run: RunConfig, model: ModelConfig, corpus: corpora.Corpus) -> None:
        self._model, self._corpus, self._settings = model, corpus, run.evaluation
        self._generator = (
            Generator(model, run.evaluation, run.evaluation.valid_beam) if run.evaluation.valid_beam else None
        )
        network = build(model)

        def sums(variables: Variables, batch: dict[str, Array]) -> tuple[Array, Array]:
            logits: Any = network.apply(variables, batch["source"], batch["target_in"])
            _, nll, tokens = label_smoothed_nll(logits, batch["target"], 0.0)
            return nll, tokens

        self._sums = jax.jit(sums)

    def __call__(self, params: Variables, fixed: dict[str, Variables]) -> dict[str, float]:
        """`valid/nll` in nats a token, and `valid/bleu`."""
        variables = prepared(self._model, {"params": params, **fixed})
        valid, settings = self._corpus.valid, self._settings
        batches = evaluation_batches(valid.source, valid.target, settings.max_tokens, settings.buckets)
        sums = [self._sums(variables, batch) for batch in batches]
        nll, tokens = np.sum(np.asarray(jax.device_get(sums), np.float64), axis=0)
        values = {"valid/nll": float(nll / tokens)}
        if self._generator and math.isfinite(nll):  # what has diverged cannot translate
            hypotheses = self._generator(variables, valid.source, "valid")
            lines = self._corpus.target_preprocessing.join(_tokens(self._corpus, hypotheses))
            values["valid/bleu"] = bleu.bleu_tokenized(lines, valid.reference)
        return values


def _tokens(assets: corpora.TextAssets, hypotheses: list[Hypothesis]) -> list[str]:
    return [assets.target_vocabulary.decode(hypothesis.tokens) for hypothesis in hypotheses]


class Scorer:
    """Translates splits and scores them."""

    def __init__(self, run: RunConfig, model: ModelConfig) -> None:
        self._generator = Generator(model, run.evaluation)

    def score(
        self, variables: Variables, assets: corpora.TextAssets, split: corpora.Split, title: str
    ) -> tuple[dict[str, Any], list[str]]:
        """The scores of a split, with names that say which BLEU they are, and the detokenised hypotheses; these are logged too."""
        hypotheses = self._generator(variables, split.source, title)
        subwords = _tokens(assets, hypotheses)
        plain = assets.target_preprocessing.undo(subwords)
        scores = bleu_scores(assets.target_preprocessing, subwords, split)
        scores["tokens"] = sum(len(h.tokens) for h in hypotheses)
        compounds = f", compounds split {scores['bleu_compound_split']:.2f}" if "bleu_compound_split" in scores else ""
        sacre = f"sacreBLEU {scores['bleu_sacre']:.2f} {scores['signature']}"
        log.info("%s: %s%s; %s", title, scores["details_tokenized"], compounds, sacre)
        for place in range(0, len(plain), -(-len(plain) // 3)):
            log.info("  source      %s", assets.source_preprocessing.join([split.source_text[place]])[0])
            log.info("  reference   %s", split.reference_detokenized[place])
            log.info("  translation %s", plain[place])
        return scores, plain


def bleu_scores(target: Preprocessing, subwords: list[str], split: corpora.Split) -> dict[str, Any]:
    """Every BLEU of hypotheses (lines of the model's tokens), each under a name that says which it is.

    sacreBLEU minds no case where the model's text is lower-cased, which the signature says. German, the target of WMT14 en-de, is
    scored with its compounds split too.
    """
    lines = target.join(subwords)
    sacre, signature = bleu.bleu_sacre(target.undo(subwords), split.reference_detokenized, target.lowercase)
    scores = {
        "bleu_tokenized": bleu.bleu_tokenized(lines, split.reference),
        "bleu_sacre": sacre,
        "signature": signature,
        "sentences": len(lines),
        "details_tokenized": bleu.describe_tokenized(lines, split.reference),
    }
    if target.language == "de":
        scores["bleu_compound_split"] = bleu.bleu_compound_split(lines, split.reference)
    return scores
