"""The task of masked language modelling."""

from __future__ import annotations

from jaxtyping import Array

from one_layer.data import stream_corpus
from one_layer.data.batches import Updates
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.masking import MaskedBatches, Masking
from one_layer.data.special_tokens import PAD
from one_layer.data.text.assets import TextAssets
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.losses import Smoothing, label_smoothed_nll
from one_layer.tasks.masked_lm.model import MaskedLanguageModel
from one_layer.tasks.masked_lm.scoring import MaskedScorer, masking
from one_layer.tasks.masked_lm.settings import MaskedSettings
from one_layer.tasks.protocol import Batch, Sums
from one_layer.tasks.streams import Scorer, StreamTask


class MaskedLM(StreamTask):
    """Predicts masked tokens (Devlin et al. 2019; RoBERTa, arXiv 1907.11692), as arXiv 2012.15045 pre-trains its encoders."""

    family = "masked_lm"
    settings = MaskedSettings
    limits = {"max_tokens": 2**24}  # noqa: RUF012  # a ClassVar of Task
    masked = True
    validated_by = ("valid_tokens",)
    inputs = ("source", "places")
    model = MaskedLanguageModel

    def check(self, data: DataConfig, model: ModelConfig, settings: MaskedSettings) -> None:
        super().check(data, model, settings)
        if data.block < 3:
            raise UserError(f"data.block is {data.block}; a masked language model needs at least 3: <s> and two tokens")

    def selectable(self, data: DataConfig, settings: MaskedSettings) -> tuple[str, ...]:
        return ("nll", "accuracy")

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> Updates:
        """Blocks of the text, whose masks depend on the seed, the epoch and the block alone."""
        text = stream_corpus.stream(corpus.train)
        chosen = masking(data, corpus.target_vocabulary)
        return MaskedBatches(text, chosen, max_tokens=data.max_tokens, accumulate=accumulate, seed=seed)

    def predictions(self, data: DataConfig, tokens: int, longest: int) -> int:
        return tokens // data.block * Masking(data.mask_share, 0, 0).places(data.block - 1)

    def arrays(self, data: DataConfig, length: int) -> dict[str, int]:
        places = Masking(data.mask_share, 0, 0).places(length - 1)
        return {"source": length, "places": places, "target": places}

    def sums(self, logits: Array, batch: Batch, smoothing: Smoothing) -> Sums:
        """Label-smoothed cross entropy, summed over the predicted tokens."""
        loss, nll, targets = label_smoothed_nll(logits, batch["target"], smoothing)
        tokens = (batch["target"][:, :1] != PAD).sum() * float(batch["source"].shape[1])
        return {"loss": loss, "nll": nll, "targets": targets, "tokens": tokens}

    def scorer(self, model: ModelConfig, data: DataConfig, settings: MaskedSettings, assets: TextAssets) -> Scorer:
        return MaskedScorer(model, settings, masking(data, assets.target_vocabulary))
