"""The score of a text under a causal language model: its negative log-likelihood, by overlapping windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.stream import Stream, windows
from one_layer.data.stream_corpus import stream, unit_of
from one_layer.data.text.units import Unit
from one_layer.models import ModelConfig, build
from one_layer.tasks.causal_lm.settings import LanguageModelSettings
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.model import prepared
from one_layer.tasks.summing import summed

Variables = dict[str, Any]


class Scorer:
    """Scores texts. Its program is compiled once, because all batches have one shape."""

    def __init__(self, model: ModelConfig, settings: LanguageModelSettings) -> None:
        self._settings, self._nll = settings, _program(model)

    def __call__(
        self,
        variables: Variables,
        text: Stream,
        unit: Unit,
        title: str,
        between: Callable[[], None] = lambda: None,
        limit: int = 0,
    ) -> dict[str, float]:
        """`nll` in nats per token, `perplexity` per token, and `bits_per_byte` (or `bits_per_character`) of the text.

        Every token counts once, the first ones too, whose context is short. `limit`: only so many tokens (0: all). `between` is called
        before every batch. It is fastest if `variables` have their masks applied already (`prepared`).
        """
        settings, total = self._settings, len(text.tokens)
        total = min(total, limit) if limit else total
        rows = max(1, settings.max_tokens // text.block)
        batches = windows(text, settings.stride, rows, limit)
        with tqdm(total=total, desc=title, unit="token", unit_scale=True, disable=None, leave=False) as bar:
            nll = float(summed(self._nll, variables, batches, between, lambda: bar.update(rows * settings.stride))[0])
        measured = sum(int(unit.sizes[ids].sum()) for ids in Stream(text.tokens[:total], text.block).chunks())
        mean = nll / total
        perplexity = math.exp(mean) if mean < 700 else math.inf
        bits = nll / math.log(2) / max(measured, 1)
        return {"nll": mean, "perplexity": perplexity, f"bits_per_{unit.measure}": bits}


@lru_cache(maxsize=8)  # the scorers of a process share what is traced and compiled
def _program(model: ModelConfig) -> Any:
    network = build(model)

    def nll(variables: Variables, batch: dict[str, Array]) -> tuple[Array]:
        logits: Any = network.apply(variables, batch["source"])
        return (label_smoothed_nll(logits, batch["target"], 0.0)[1],)

    return jax.jit(nll)


class CausalValidator:
    """Scores the validation text, or the first `evaluation.valid_tokens` of it."""

    def __init__(self, model: ModelConfig, data: DataConfig, settings: LanguageModelSettings, corpus: Corpus) -> None:
        self._model, self._limit = model, settings.valid_tokens
        self._scorer, self._unit = Scorer(model, settings), unit_of(data, corpus)
        self._text = stream(corpus.valid)

    def __call__(
        self, params: Variables, fixed: dict[str, Variables], between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """`valid/nll` in nats per token, `valid/perplexity`, and `valid/bits_per_byte` or `valid/bits_per_character`."""
        variables = prepared(self._model, {"params": params, **fixed})
        values = self._scorer(variables, self._text, self._unit, "valid", between, self._limit)
        return {f"valid/{name}": value for name, value in values.items()}
