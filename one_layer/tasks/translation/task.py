"""The task of translation. What training and scoring alone need is imported at first use, since one line is translated without it."""

from __future__ import annotations

from typing import Any

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.languages import sacrebleu_tokenizer
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.paired import Paired
from one_layer.tasks.protocol import Task, Validator, Variables
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tasks.work import Work, search_work


class Translation(Task):
    """Translates sentences of one language into another (paper A, section 4)."""

    family = "translation"
    settings = SearchSettings
    limits = {  # noqa: RUF012  # a ClassVar of Task
        "beam": 1000,
        "valid_beam": 1000,
        "max_length_a": 100,
        "max_length_b": 10_000,
        "max_tokens": 2**24,
        "buckets": 1000,
    }
    validated_by = ("valid_beam", "length_penalty", "max_length_a", "max_length_b")
    inputs = ("source", "target_in")
    model = TranslationModel

    def check(self, data: DataConfig, model: ModelConfig, settings: SearchSettings) -> None:
        if data.streamed:
            raise UserError(
                f"task=translation, but data.source={data.source!r:.200} is one text without translations; give task=causal_lm, "
                "or data.source=text for pairs of files"
            )
        if data.labels or data.source == "labelled":
            raise UserError(
                f"task=translation, but data.source={data.source!r:.200} and data.labels={data.labels!r:.200}; labelled texts need "
                "task=classification and model.decoder_layers=0"
            )

    def selectable(self, data: DataConfig, settings: SearchSettings) -> tuple[str, ...]:
        return ("nll", "bleu") if settings.valid_beam else ("nll",)

    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        from one_layer.data import loading

        if saved is None:
            return loading.load(data)
        return loading.load(data, saved.vocabularies, saved.codes, steps=saved.steps)

    def scored_corpus(self, data: DataConfig, saved: TextAssets, wanted: str = "") -> Corpus:
        from one_layer.data import loading

        return loading.load_scored(data, saved.vocabularies, saved.codes, wanted, steps=saved.steps)

    def validator(self, model: ModelConfig, data: DataConfig, settings: SearchSettings, corpus: Corpus) -> Validator:
        """Measures `valid/nll` in nats per token and, unless `valid_beam` is 0, tokenised BLEU as `valid/bleu`."""
        from one_layer.tasks.translation.validation import TranslationValidator

        return TranslationValidator(model, settings, corpus)

    def paired(
        self, split: Split, systems: tuple[list[str], list[str]], assets: TextAssets, settings: SearchSettings
    ) -> Paired:
        """sacreBLEU, as the scores have it."""
        from one_layer.tasks.translation.paired import translations

        target = assets.target_preprocessing
        tokenize = settings.tokenize or sacrebleu_tokenizer(target.language)
        return translations(split.reference_detokenized, systems, tokenize, target.lowercase)

    def lowered_search(
        self, model: ModelConfig, settings: SearchSettings, variables: Variables, source: Any, limits: Any, active: Any
    ) -> Any:
        from one_layer.tasks.translation.generate import Generator

        return Generator(model, settings).lower(variables, source, limits, active)

    def line_work(self, model: ModelConfig, settings: SearchSettings, tokens: int) -> Work:
        """The work of the encoder and of a search to the maximum length."""
        longest = int(settings.max_length_a * tokens + settings.max_length_b) + 1  # including the first eos
        return search_work(model, tokens, max(settings.beam, settings.valid_beam), longest)
