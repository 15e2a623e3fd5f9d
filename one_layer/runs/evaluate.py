"""Scores a checkpoint or a ticket on any split, and writes the results into a run's folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from one_layer.models.accounting import account, describe
from one_layer.runs.folder import RunFolder
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)


def evaluate(model: TrainedModel, split_name: str, folder: RunFolder | None) -> dict[str, Any]:
    """Scores a model on a split: `valid`, the name of a test set, or `test` for all test sets. Other splits are not read.

    If `folder` is given, writes `evaluation-SPLIT.json` and `hypotheses-SPLIT.txt` (detokenised text, or labels) into it for every
    split. Raises: UserError for an unknown split or missing files.
    """
    if model.config.supermask.exact or not {"materialized", "packed"} & model.variables.keys():
        stored = account(model.config, model.variables)
        log.info("parameters and bytes:\n%s", describe({model.config.weights: stored}))
    corpus = model.task.scored_corpus(model.data, model.assets, split_name)
    splits = {"valid": corpus.valid, **corpus.tests} if len(corpus.valid) else corpus.tests
    found = {}
    for name, split in splits.items():
        scores, hypotheses = model.score(split, name)
        scores = {"split": name, "checkpoint": model.source, "step": model.step, **vars(model.settings), **scores}
        if Path(model.source).is_file():  # a ticket
            scores["file_bytes"] = Path(model.source).stat().st_size
        if folder:
            folder.write_scores(name, model.source, scores)
            folder.write_hypotheses(name, model.source, hypotheses)
        found[name] = scores
    return found
