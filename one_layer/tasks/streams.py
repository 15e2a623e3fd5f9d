"""What the tasks on one text without sides share: causal and masked language models read it in blocks, and score it alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from one_layer.data import stream_corpus
from one_layer.data.config import STREAMS, DataConfig, listed
from one_layer.data.corpus import Corpus
from one_layer.data.stream import Stream
from one_layer.data.text.assets import TextAssets
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import not_finite, prepared
from one_layer.tasks.protocol import Task, check_positions

Variables = dict[str, Any]


class StreamTask(Task):
    """A task on one text, whose vocabulary has a token for masks if it is `masked`."""

    masked: ClassVar[bool]

    def check(self, data: DataConfig, model: ModelConfig, settings: Any) -> None:
        if not data.streamed:
            raise UserError(
                f"task={self.name}, but data.source={data.source!r:.200}; give data.source={listed(STREAMS, str)}, one text without sides"
            )
        check_positions(model, "data.block", data.block)

    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        return stream_corpus.load(data, saved, masked=self.masked)

    def scored_corpus(self, data: DataConfig, saved: TextAssets, wanted: str = "") -> Corpus:
        return stream_corpus.load_scored(data, saved, wanted, masked=self.masked)


@runtime_checkable
class Score(Protocol):
    """What scores a text: its values by name, among them `nll` in nats per target.

    `between` is called before every batch. `limit`: only so many tokens (0: all). It is fastest if `variables` have their masks applied
    already (`prepared`).
    """

    def __call__(
        self, variables: Variables, text: Stream, title: str, between: Callable[[], None] = ..., limit: int = 0
    ) -> dict[str, float]: ...


class StreamValidator:
    """Scores the validation text, or the first `limit` tokens of it (`evaluation.valid_tokens`)."""

    def __init__(self, model: ModelConfig, corpus: Corpus, score: Score, limit: int) -> None:
        self._model, self._text, self._score, self._limit = model, stream_corpus.stream(corpus.valid), score, limit

    def __call__(
        self, params: Variables, fixed: dict[str, Variables], between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """The values of the score, `valid/nll` and so on, but for the number of tokens."""
        variables = prepared(self._model, {"params": params, **fixed})
        values = self._score(variables, self._text, "valid", between, self._limit)
        return {f"valid/{name}": value for name, value in values.items() if name != "masked"}


def check_finite(values: dict[str, float]) -> dict[str, float]:
    """The values of a score. Raises: UserError if the model's outputs were not finite."""
    if not np.isfinite(values["nll"]):
        raise not_finite("score a text")
    return values


def perplexity(nll: float) -> float:
    """e to the power of an `nll` in nats per target; infinite where that is no float."""
    return math.exp(nll) if nll < 700 else math.inf
