"""The score of a text under a masked language model: how well it predicts tokens that are always masked in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.masking import Masking, validation_batches
from one_layer.data.special_tokens import PAD
from one_layer.data.stream import Stream
from one_layer.data.stream_corpus import stream
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig, build
from one_layer.system.errors import UserError
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.masked_lm.settings import MaskedSettings
from one_layer.tasks.model import prepared
from one_layer.tasks.summing import summed

Variables = dict[str, Any]


def masking(data: DataConfig, vocabulary: Vocabulary) -> Masking:
    """How tokens of this vocabulary are masked."""
    return Masking(data.mask_share, vocabulary.tokens.index(MASK), len(vocabulary))


class Scorer:
    """Scores texts. Its program is compiled once, because all batches have one shape."""

    def __init__(self, model: ModelConfig, settings: MaskedSettings, masking: Masking) -> None:
        self._settings, self._masking, self._sums = settings, masking, _program(model)

    def __call__(
        self,
        variables: Variables,
        text: Stream,
        title: str,
        between: Callable[[], None] = lambda: None,
        limit: int = 0,
    ) -> dict[str, float]:
        """`nll` in nats per masked token, `perplexity`, `accuracy`, and the number of `masked` tokens.

        `limit`: only so many tokens, rounded up to whole blocks (0: all). `between` is called before every batch.
        """
        rows = max(1, self._settings.max_tokens // text.block)
        batches = validation_batches(text, self._masking, rows, limit)
        with tqdm(desc=title, unit="batch", disable=None, leave=False) as bar:
            nll, targets, right = summed(self._sums, variables, batches, between, bar.update).tolist()
        if not targets:
            raise UserError(
                f"no token of {title} is masked, so that there is nothing to score; give a longer text, or a larger data.mask_share"
            )
        mean = nll / targets
        perplexity = math.exp(mean) if mean < 700 else math.inf
        return {"nll": mean, "perplexity": perplexity, "accuracy": right / targets, "masked": targets}


@lru_cache(maxsize=8)  # the scorers of a process share what is traced and compiled
def _program(model: ModelConfig) -> Any:
    network = build(model)

    def sums(variables: Variables, batch: dict[str, Array]) -> tuple[Array, Array, Array]:
        logits: Any = network.apply(variables, batch["source"], batch["places"])
        _, nll, targets = label_smoothed_nll(logits, batch["target"], 0.0)
        right = jnp.sum((jnp.argmax(logits, -1) == batch["target"]) & (batch["target"] != PAD))
        return nll, targets, right.astype(jnp.float32)

    return jax.jit(sums)


class MaskedValidator:
    """Scores the validation text, or the first `evaluation.valid_tokens` of it."""

    def __init__(self, model: ModelConfig, data: DataConfig, settings: MaskedSettings, corpus: Corpus) -> None:
        self._model, self._limit, self._text = model, settings.valid_tokens, stream(corpus.valid)
        self._scorer = Scorer(model, settings, masking(data, corpus.target_vocabulary))

    def __call__(
        self, params: Variables, fixed: dict[str, Variables], between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """`valid/nll` in nats per masked token, `valid/perplexity` and `valid/accuracy`."""
        variables = prepared(self._model, {"params": params, **fixed})
        values = self._scorer(variables, self._text, "valid", between, self._limit)
        return {f"valid/{name}": values[name] for name in ("nll", "perplexity", "accuracy")}
