"""A classifier's log-probabilities of labels, and their scores on a split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int
from tqdm import tqdm

from one_layer.data.batches import evaluation_batches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.special_tokens import UNK
from one_layer.models import ModelConfig, build
from one_layer.models.sharding import Devices, fetch
from one_layer.tasks.classification.labels import label_set
from one_layer.tasks.classification.measures import SCORES
from one_layer.tasks.classification.settings import LabellingSettings
from one_layer.tasks.model import prepared

Variables = dict[str, Any]
LogP = Float32[np.ndarray, "texts labels"]


class Labeller:
    """Computes log-probabilities of labels. A program is compiled once for each padded shape, and kept."""

    def __init__(self, model: ModelConfig, settings: LabellingSettings) -> None:
        self._settings, self._log_p = settings, _program(model)

    def __call__(
        self,
        variables: Variables,
        texts: Sequence[Int[np.ndarray, "_"]],
        title: str,
        between: Callable[[], None] = lambda: None,
    ) -> LogP:
        """The log-probabilities for every text, in order. It is fastest if `variables` have their masks applied already (`prepared`).

        `between` is called before every batch.
        """
        settings = self._settings
        found: dict[int, np.ndarray] = {}
        devices = Devices.holding(variables)
        buckets = min(settings.buckets, 1 + len(texts) // 100)
        with tqdm(total=len(texts), desc=title, unit="text", disable=None, leave=False) as bar:
            for batch in evaluation_batches(texts, None, settings.max_tokens, buckets):
                between()
                rows = batch["index"] >= 0
                log_p = fetch(self._log_p(variables, devices.rows(batch["source"])))[: len(rows)][rows]
                found.update(zip(batch["index"][rows].tolist(), log_p, strict=True))
                bar.update(len(log_p))
        return np.stack([found[place] for place in range(len(texts))])


@lru_cache(maxsize=8)  # the labellers of a process share what is traced and compiled
def _program(model: ModelConfig) -> Any:
    network = build(model)

    def log_p(variables: Variables, source: Array) -> Array:
        logits: Any = network.apply(variables, source)
        return jax.nn.log_softmax(jnp.asarray(logits))

    return jax.jit(log_p)


class ClassificationValidator:
    """Measures negative log-likelihood per text and the scores of the labelled task on the validation set."""

    def __init__(self, model: ModelConfig, data: DataConfig, settings: LabellingSettings, corpus: Corpus) -> None:
        self._model, self._corpus, self._scores = model, corpus, label_set(data).scores
        self._labeller = Labeller(model, settings)

    def __call__(
        self, params: Variables, fixed: dict[str, Variables], between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """`valid/nll` in nats per text, and the scores of the labelled task, such as `valid/accuracy`."""
        variables, valid = prepared(self._model, {"params": params, **fixed}), self._corpus.valid
        values = label_scores(self._labeller(variables, valid.source, "valid", between), valid, self._scores)
        return {f"valid/{name}": value for name, value in values.items()}


def label_scores(log_p: LogP, split: Split, scores: Sequence[str]) -> dict[str, float]:
    """`nll` in nats per text, and the named `scores`, but for those that cannot measure this text.

    Such a score is not 1 even if all labels are right: F1 where no text has the label 1, Matthews' correlation where all have one label.
    """
    right = np.array([ids[0] for ids in split.target]) - (UNK + 1)
    nll = -float(log_p[np.arange(len(right)), right].astype(np.float64).mean())
    given = log_p.argmax(axis=1)
    return {
        "nll": nll,
        **{name: SCORES[name](given, right) for name in scores if math.isclose(SCORES[name](right, right), 1)},
    }
