"""What a classifier scores: on the validation set while training, and on any split, by the measures of its task."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int
from tqdm import tqdm

from one_layer.data import corpus as corpora
from one_layer.data.batches import evaluation_batches
from one_layer.errors import UserError
from one_layer.models import ModelConfig, build
from one_layer.models.config import UNK
from one_layer.runs.settings import EvaluationConfig, RunConfig
from one_layer.tasks.classification.glue import task_named
from one_layer.tasks.classification.measures import SCORES
from one_layer.tasks.translation.generate import prepared

log = logging.getLogger(__name__)

Variables = dict[str, Any]


class Labeller:
    """Log-probabilities of labels; compiled once for each padded shape and kept."""

    def __init__(self, model: ModelConfig, settings: EvaluationConfig) -> None:
        self._settings, network = settings, build(model)

        def log_p(variables: Variables, source: Array) -> Array:
            logits: Any = network.apply(variables, source)
            return jax.nn.log_softmax(jnp.asarray(logits))

        self._log_p = jax.jit(log_p)

    def __call__(
        self, variables: Variables, texts: Sequence[Int[np.ndarray, "_"]], title: str
    ) -> Float32[np.ndarray, "texts labels"]:
        """Of every text, in order. `variables` are best what `one_layer.tasks.translation.generate.prepared` makes of a model's."""
        settings = self._settings
        found: dict[int, np.ndarray] = {}
        buckets = min(settings.buckets, 1 + len(texts) // 100)
        with tqdm(total=len(texts), desc=title, unit="text", disable=None, leave=False) as bar:
            for batch in evaluation_batches(texts, None, settings.max_tokens, buckets):
                rows = batch["index"] >= 0
                log_p = np.asarray(self._log_p(variables, batch["source"]))[rows]
                found.update(zip(batch["index"][rows].tolist(), log_p, strict=True))
                bar.update(len(log_p))
        return np.stack([found[place] for place in range(len(texts))])


class Validator:
    """Negative log-likelihood a text and the task's scores, of the validation set."""

    def __init__(self, run: RunConfig, model: ModelConfig, corpus: corpora.Corpus) -> None:
        self._model, self._corpus, self._task = model, corpus, run.data.labels
        self._labeller = Labeller(model, run.evaluation)

    def __call__(self, params: Variables, fixed: dict[str, Variables]) -> dict[str, float]:
        """`valid/nll` in nats a text, and `valid/accuracy` or what else the task has."""
        variables, valid = prepared(self._model, {"params": params, **fixed}), self._corpus.valid
        values = _scores(self._labeller(variables, valid.source, "valid"), valid, self._task)
        return {f"valid/{name}": value for name, value in values.items()}


class Scorer:
    """Labels splits and scores them."""

    def __init__(self, run: RunConfig, model: ModelConfig) -> None:
        self._labeller, self._task = Labeller(model, run.evaluation), run.data.labels

    def score(
        self, variables: Variables, assets: corpora.TextAssets, split: corpora.Split, title: str
    ) -> tuple[dict[str, Any], list[str]]:
        """The scores of a split, in [0, 1] (Matthews' in [-1, 1]), and the label that every text was given; they are logged too."""
        log_p = self._labeller(variables, split.source, title)
        given = label_names(assets, log_p)
        values = _scores(log_p, split, self._task)
        log.info("%s: %s", title, ", ".join(f"{name} {value:.4f}" for name, value in values.items()))
        for place in range(0, len(given), -(-len(given) // 3)):
            log.info("  text  %s", split.source_text[place].replace("\t", " | "))
            log.info("  label %s, given %s (p %.2f)", split.reference[place], given[place], np.exp(log_p[place].max()))
        return {**values, "texts": len(given)}, given


def label_names(assets: corpora.TextAssets, log_p: Float32[np.ndarray, "texts labels"]) -> list[str]:
    """The likeliest label of every text. Raises: UserError where the model's numbers are not finite."""
    if not np.isfinite(log_p).all():
        raise UserError("the model's logits are not finite: this checkpoint cannot classify; take another")
    return [assets.target_vocabulary.tokens[UNK + 1 + label] for label in log_p.argmax(axis=1)]


def _scores(log_p: Float32[np.ndarray, "texts labels"], split: corpora.Split, task: str) -> dict[str, float]:
    labels = np.array([ids[0] for ids in split.target]) - (UNK + 1)
    nll = -float(log_p[np.arange(len(labels)), labels].astype(np.float64).mean())
    given = log_p.argmax(axis=1)
    return {"nll": nll, **{name: SCORES[name](given, labels) for name in task_named(task).scores}}
