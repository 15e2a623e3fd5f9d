"""The task of causal language modelling."""

from __future__ import annotations

from one_layer.data import stream_corpus
from one_layer.data.batches import Updates
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.stream import StreamBatches
from one_layer.data.text.assets import TextAssets
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.causal_lm.model import CausalLanguageModel
from one_layer.tasks.causal_lm.scoring import WindowScorer
from one_layer.tasks.causal_lm.settings import LanguageModelSettings
from one_layer.tasks.streams import Scorer, StreamTask
from one_layer.tasks.work import Work, decoder_work


class CausalLM(StreamTask):
    """Predicts each token of a text from those before it (arXiv 2012.15045 trains such a model on enwik8)."""

    family = "decoder"
    settings = LanguageModelSettings
    limits = {  # noqa: RUF012  # a ClassVar of Task
        "stride": 2**16,
        "max_tokens": 2**24,
        "sample_length": 2**16,
    }
    masked = False
    validated_by = ("stride", "valid_tokens")
    model = CausalLanguageModel

    def check(self, data: DataConfig, model: ModelConfig, settings: LanguageModelSettings) -> None:
        super().check(data, model, settings)
        if settings.stride > data.block:
            raise UserError(
                f"evaluation.stride is {settings.stride}, but data.block is {data.block}: tokens between two windows would not be scored; "
                f"give at most {data.block}"
            )

    def selectable(self, data: DataConfig, settings: LanguageModelSettings) -> tuple[str, ...]:
        return ("nll",)

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> Updates:
        """Blocks of the text, in an order that depends on the seed and the epoch alone."""
        return StreamBatches(
            stream_corpus.stream(corpus.train), max_tokens=data.max_tokens, accumulate=accumulate, seed=seed
        )

    def arrays(self, data: DataConfig, length: int) -> dict[str, int]:
        return {"source": length, "target": length}

    def scorer(
        self, model: ModelConfig, data: DataConfig, settings: LanguageModelSettings, assets: TextAssets
    ) -> Scorer:
        return WindowScorer(model, settings, stream_corpus.unit_of(data, assets))

    def line_work(self, model: ModelConfig, settings: LanguageModelSettings, tokens: int) -> Work:
        """The work of reading a prompt and writing on."""
        return decoder_work(model, tokens + settings.sample_length)
