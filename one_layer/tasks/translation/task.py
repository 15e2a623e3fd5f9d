"""The task of translation. What training and scoring alone need is imported at first use, since one line is translated without it."""

import dataclasses
import logging
import math

from one_layer.data.batches import evaluation_batches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.languages import sacrebleu_tokenizer
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.losses import nll_program, summed
from one_layer.tasks.model import prepared
from one_layer.tasks.protocol import Between, Paired, Task, Validator, Variables
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tasks.work import Work, search_work

log = logging.getLogger(__name__)


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
        return "nll", "bleu"

    def validator(self, model: ModelConfig, data: DataConfig, settings: SearchSettings, corpus: Corpus) -> Validator:
        """Measures `valid/nll` in nats per token and, unless `valid_beam` is 0 or BLEU cannot measure the text, tokenised `valid/bleu`."""
        from one_layer.tasks.translation import bleu
        from one_layer.tasks.translation.generate import translated

        program, valid, target = nll_program(model, ("source", "target_in")), corpus.valid, corpus.target_preprocessing
        reference = bleu.bleu_tokens(target, valid.reference)
        measured = bleu.can_measure(reference)
        if settings.valid_beam and not measured:
            log.warning("valid: %s; so it is not computed", bleu.UNMEASURED)
        searched = dataclasses.replace(settings, beam=settings.valid_beam or 1)
        # A tokenizer that needs a package is missed now, and not after hours of training.
        bleu.sacrebleu_metric(settings.tokenize or sacrebleu_tokenizer(target.language))

        def values(params: Variables, fixed: dict[str, Variables], between: Between = lambda: None) -> dict[str, float]:
            variables = prepared(model, {"params": params, **fixed})
            batches = evaluation_batches(valid.source, valid.target, settings.max_tokens, settings.buckets)
            nll, tokens = summed(program, variables, batches, between).tolist()
            found = {"valid/nll": nll / tokens}
            if settings.valid_beam and measured and math.isfinite(nll):  # a diverged model cannot translate
                hypotheses = translated(model, searched, variables, valid.sentences, "valid", between)
                lines = bleu.bleu_tokens(target, target.join(list(map(corpus.target_vocabulary.decode, hypotheses))))
                found["valid/bleu"] = bleu.bleu_tokenized(lines, reference)
            return found

        return values

    def paired(
        self, split: Split, systems: tuple[list[str], list[str]], assets: TextAssets, settings: SearchSettings
    ) -> Paired:
        """sacreBLEU, as the scores have it."""
        from one_layer.tasks.translation.bleu import translations

        target = assets.target_preprocessing
        tokenize = settings.tokenize or sacrebleu_tokenizer(target.language)
        return translations(split.reference_detokenized, systems, tokenize, target.lowercase)

    def line_work(self, model: ModelConfig, settings: SearchSettings, tokens: int) -> Work:
        """The work of the encoder and of a search to the maximum length."""
        longest = settings.longest(tokens) + 1  # including the first eos
        return search_work(model, tokens, max(settings.beam, settings.valid_beam), longest)
