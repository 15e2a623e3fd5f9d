"""What the tasks on one text without sides share: causal and masked language models read it in blocks, and score it alike."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from one_layer.data import stream_corpus
from one_layer.data.config import STREAMS, DataConfig, listed
from one_layer.data.corpus import Corpus
from one_layer.data.stream import Stream
from one_layer.data.text.assets import TextAssets
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import not_finite, prepared
from one_layer.tasks.protocol import Between, Task, Validator, Variables, check_positions

# (variables, text, title, between, limit) -> the values of a text by name, among them `nll` in nats per target. `between` is called before
# every batch. `limit`: only so many tokens (0: all). It is fastest if the variables have their masks applied already (`prepared`). Its
# program is compiled once, because all batches have one shape.
Scorer = Callable[[Variables, Stream, str, Between, int], dict[str, float]]


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

    @abstractmethod
    def scorer(self, model: ModelConfig, data: DataConfig, settings: Any, assets: TextAssets) -> Scorer:
        """What scores a text in the vocabulary of `assets`."""

    def validator(self, model: ModelConfig, data: DataConfig, settings: Any, corpus: Corpus) -> Validator:
        """Measures what `scorer` does of the validation text, or of its first `evaluation.valid_tokens` tokens: `valid/nll` and so on."""
        score, text = self.scorer(model, data, settings, corpus), stream_corpus.stream(corpus.valid)

        def values(params: Variables, fixed: dict[str, Variables], between: Between = lambda: None) -> dict[str, float]:
            found = score(prepared(model, {"params": params, **fixed}), text, "valid", between, settings.valid_tokens)
            return {f"valid/{name}": value for name, value in found.items() if name != "masked"}

        return values


def check_finite(values: dict[str, float]) -> dict[str, float]:
    """The values of a score. Raises: UserError if the model's outputs were not finite."""
    if not np.isfinite(values["nll"]):
        raise not_finite("score a text")
    return values


def perplexity(nll: float) -> float:
    """e to the power of an `nll` in nats per target; infinite where that is no float."""
    return math.exp(nll) if nll < 700 else math.inf
