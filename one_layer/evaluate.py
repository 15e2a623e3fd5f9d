"""Scores: the validation set's while training, and a checkpoint's on any split, with what BLEU it is always said."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from one_layer import bleu
from one_layer.accounting import account, describe
from one_layer.data import corpus as corpora
from one_layer.data.batches import evaluation_batches
from one_layer.data.preprocess import join_bpe
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.generate import Generator, Hypothesis
from one_layer.losses import label_smoothed_nll
from one_layer.models import ModelConfig, build
from one_layer.restore import RestoredRun
from one_layer.settings import RunConfig

log = logging.getLogger(__name__)

Variables = dict[str, Any]


class Validator:
    """Negative log-likelihood a token and, unless `evaluation.valid_beam` is 0, tokenised BLEU of the validation set."""

    def __init__(self, run: RunConfig, model: ModelConfig, corpus: corpora.Corpus) -> None:
        self._corpus, self._settings = corpus, run.evaluation
        self._generator = (
            Generator(model, run.evaluation, run.evaluation.valid_beam) if run.evaluation.valid_beam else None
        )
        network = build(model)

        def sums(variables: Variables, batch: dict[str, Array]) -> tuple[Array, Array]:
            logits: Any = network.apply(variables, batch["source"], batch["target_in"])
            _, nll, tokens = label_smoothed_nll(logits, batch["target"], 0.0)
            return nll, tokens

        self._sums = jax.jit(sums)
        self._materialize = Generator(model, run.evaluation).prepare

    def __call__(self, params: Variables, fixed: dict[str, Variables]) -> dict[str, float]:
        """`valid/nll` in nats a token, and `valid/bleu`."""
        variables = self._materialize({"params": params, **fixed})
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


def score(
    generator: Generator, variables: Variables, assets: corpora.TextAssets, split: corpora.Split, title: str
) -> tuple[dict[str, Any], list[str]]:
    """Translates a split. Returns its scores, with names that say which BLEU they are, and the detokenised hypotheses."""
    hypotheses = generator(variables, split.source, title)
    subwords = _tokens(assets, hypotheses)
    lines, plain = assets.target_preprocessing.join(subwords), assets.target_preprocessing.undo(subwords)
    sacre, signature = bleu.bleu_sacre(plain, split.reference_detokenized)
    tokens = sum(len(h.tokens) for h in hypotheses)
    scores = {
        "bleu_tokenized": bleu.bleu_tokenized(lines, split.reference),
        "bleu_sacre": sacre,
        "signature": signature,
        "sentences": len(lines),
        "tokens": tokens,
        "details_tokenized": bleu.describe_tokenized(lines, split.reference),
    }
    return scores, plain


def _tokens(assets: corpora.TextAssets, hypotheses: list[Hypothesis]) -> list[str]:
    return [assets.target_vocabulary.decode(hypothesis.tokens) for hypothesis in hypotheses]


def evaluate(restored: RestoredRun, split_name: str, folder: Path | None) -> dict[str, Any]:
    """Scores a checkpoint or ticket on a split (`valid`, a test set's name, or `test`: all of them).

    Leaves `evaluation-SPLIT.json` and `hypotheses-SPLIT.txt` (detokenised) in `folder`, if there is one, for every split scored.
    Raises: UserError for what is not there.
    """
    if restored.model.supermask.exact or (
        "materialized" not in restored.variables and "packed" not in restored.variables
    ):
        stored = account(restored.model, restored.variables)
        log.info("parameters and bytes:\n%s", describe({restored.model.weights: stored}))
    settings = restored.run.evaluation
    corpus = corpora.load(restored.run.data, restored.assets.vocabularies, restored.assets.codes, training=False)
    generator = Generator(restored.model, settings)
    variables = generator.prepare(restored.variables)
    found = {}
    for name, split in _splits(corpus, split_name).items():
        scores, plain = score(generator, variables, corpus, split, name)
        scores = {"split": name, "checkpoint": restored.source, "step": restored.step, **vars(settings), **scores}
        if folder:
            write_atomically(folder / f"evaluation-{name}.json", json.dumps(scores, indent=1) + "\n")
            write_atomically(folder / f"hypotheses-{name}.txt", "".join(line + "\n" for line in plain))
        report(name, scores, split, plain)
        found[name] = scores
    return found


def report(name: str, scores: dict[str, Any], split: corpora.Split, plain: list[str]) -> None:
    """Says what a split scored, and shows three of its translations."""
    log.info("%s: %s; sacreBLEU %.2f %s", name, scores["details_tokenized"], scores["bleu_sacre"], scores["signature"])
    for place in range(0, len(plain), -(-len(plain) // 3)):
        log.info("  source      %s", join_bpe(split.source_text[place]))
        log.info("  reference   %s", split.reference_detokenized[place])
        log.info("  translation %s", plain[place])


def _splits(corpus: corpora.Corpus, name: str) -> dict[str, corpora.Split]:
    known = {"valid": corpus.valid, **corpus.tests}
    if name in known:
        return {name: known[name]}
    if name == "test":
        return corpus.tests
    raise UserError(f"--split={name!r} is unknown; this run has {', '.join(known)} (and test: all test sets)")
