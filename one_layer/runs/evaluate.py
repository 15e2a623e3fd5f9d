"""Scores: the validation set's while training, and a checkpoint's or ticket's on any split."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from one_layer.data import corpus as corpora
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.models import ModelConfig
from one_layer.models.accounting import account, describe
from one_layer.runs.restore import RestoredRun
from one_layer.runs.settings import RunConfig
from one_layer.tasks.classification import scores as label_scores
from one_layer.tasks.translation import scores as translation_scores
from one_layer.tasks.translation.generate import prepared

log = logging.getLogger(__name__)

Validator = translation_scores.Validator | label_scores.Validator
Scorer = translation_scores.Scorer | label_scores.Scorer


def validator(run: RunConfig, model: ModelConfig, corpus: corpora.Corpus) -> Validator:
    """What gives the values that training is followed by."""
    kind = label_scores if model.classifies else translation_scores
    return kind.Validator(run, model, corpus)


def scorer(run: RunConfig, model: ModelConfig) -> Scorer:
    """What scores a split."""
    kind = label_scores if model.classifies else translation_scores
    return kind.Scorer(run, model)


def evaluate(restored: RestoredRun, split_name: str, folder: Path | None) -> dict[str, Any]:
    """Scores a checkpoint or ticket on a split (`valid`, a test set's name, or `test`: all of them).

    Leaves `evaluation-SPLIT.json` and `hypotheses-SPLIT.txt` (detokenised; or labels) in `folder`, if there is one, for every split.
    Raises: UserError for what is not there.
    """
    if restored.model.supermask.exact or (
        "materialized" not in restored.variables and "packed" not in restored.variables
    ):
        stored = account(restored.model, restored.variables)
        log.info("parameters and bytes:\n%s", describe({restored.model.weights: stored}))
    settings = restored.run.evaluation
    corpus = corpora.load(restored.run.data, restored.assets.vocabularies, restored.assets.codes, training=False)
    scores_of, variables = scorer(restored.run, restored.model), prepared(restored.model, restored.variables)
    found = {}
    for name, split in _splits(corpus, split_name).items():
        scores, plain = scores_of.score(variables, corpus, split, name)
        scores = {"split": name, "checkpoint": restored.source, "step": restored.step, **vars(settings), **scores}
        if folder:
            write_atomically(folder / f"evaluation-{name}.json", json.dumps(scores, indent=1) + "\n")
            write_atomically(folder / f"hypotheses-{name}.txt", "".join(line + "\n" for line in plain))
        found[name] = scores
    return found


def _splits(corpus: corpora.Corpus, name: str) -> dict[str, corpora.Split]:
    known = {"valid": corpus.valid, **corpus.tests}
    if name in known:
        return {name: known[name]}
    if name == "test" and corpus.tests:
        return corpus.tests
    every = " (and test: all test sets)" if corpus.tests else ", and no test set: data.tests is empty"
    raise UserError(f"--split={name!r} is unknown; this run has {', '.join(known)}{every}")
