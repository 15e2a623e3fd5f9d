"""The score of a text under a causal language model: its negative log-likelihood, by overlapping windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from one_layer.data.stream import Stream, windows
from one_layer.data.text.units import Unit
from one_layer.models import ModelConfig
from one_layer.tasks.causal_lm.settings import LanguageModelSettings
from one_layer.tasks.streams import Scorer, perplexity
from one_layer.tasks.summing import nll_program, summed

Variables = dict[str, Any]


class WindowScorer(Scorer):
    """Scores texts of one kind of tokens."""

    def __init__(self, model: ModelConfig, settings: LanguageModelSettings, unit: Unit) -> None:
        self._settings, self._unit, self._nll = settings, unit, nll_program(model, ("source",))

    def __call__(
        self,
        variables: Variables,
        text: Stream,
        title: str,
        between: Callable[[], None] = lambda: None,
        limit: int = 0,
    ) -> dict[str, float]:
        """`nll` in nats per token, `perplexity` per token, and `bits_per_byte` (or `bits_per_character`) of the text.

        Every token counts once, the first ones too, whose context is short.
        """
        settings, total = self._settings, len(text.tokens)
        total = min(total, limit) if limit else total
        rows = max(1, settings.max_tokens // text.block)
        batches = windows(text, settings.stride, rows, limit)
        with tqdm(total=total, desc=title, unit="token", unit_scale=True, disable=None, leave=False) as bar:
            nll = float(summed(self._nll, variables, batches, between, lambda: bar.update(rows * settings.stride))[0])
        of_text = Stream(text.tokens[:total], text.block).chunks()
        measured = sum(int(self._unit.sizes[ids].sum()) for ids in of_text)
        bits = nll / math.log(2) / max(measured, 1)
        return {"nll": nll / total, "perplexity": perplexity(nll / total), f"bits_per_{self._unit.measure}": bits}
