"""Masked language modelling: a trained model fills masks in lines, and scores texts."""

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data.batches import Updates, evaluation_batches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.masking import MaskedBatches, Masking, validation_batches
from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.data.stream import Stream
from one_layer.data.stream_corpus import stream, unit_of
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.units import MASK, Ids, Unit
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError, check_least
from one_layer.tasks.losses import Smoothing, label_smoothed_nll, log_p_program, nll_program, summed
from one_layer.tasks.model import TrainedModel, Variables, not_finite
from one_layer.tasks.protocol import Batch, Sums
from one_layer.tasks.streams import Scorer, StreamTask, check_finite, perplexity

log = logging.getLogger(__name__)
CANDIDATES = 5  # tokens that are given for each mask
WHITE_AT_END = re.compile(r"[^\S\x1c-\x1f]+\Z")  # Unicode's white space, which is not quite Python's


@dataclass(frozen=True)
class MaskedSettings:
    """configs/common.py comments on every key. Raises: UserError for a value out of range."""

    max_tokens: int = 4096
    valid_tokens: int = 0

    def __post_init__(self) -> None:
        check_least("evaluation", self, max_tokens=1, valid_tokens=0)


class Candidate(NamedTuple):
    """A token that may stand in place of a mask, as text, and its probability."""

    text: str
    probability: float


class MaskedLanguageModel(TrainedModel):
    """Fills each `<mask>` of a line."""

    task = "masked_lm"
    verb = "fill"

    def fill(self, lines: Iterable[str]) -> list[list[list[Candidate]]]:
        """For every line, and each `<mask>` in it, the most probable tokens; an empty list for an empty line.

        With BPE, white space before a mask belongs to the token in its place, as in RoBERTa. Raises: UserError, with the line's number,
        for a line without a mask, for one that is longer than the context, and for anything but a list of texts.
        """
        lines = self.given(lines)
        full = [place for place, line in enumerate(lines) if line.strip()]
        ids = [self._encoded(place + 1, lines[place]) for place in full]
        found: list[list[list[Candidate]]] = [[] for _ in lines]
        if not ids:
            return found
        places = [np.flatnonzero(each == self._mask) for each in ids]
        most = max(map(len, places))
        for batch in evaluation_batches(ids, None, self.settings.max_tokens, 1):
            rows = [index for index in batch["index"].tolist() if index >= 0]
            wanted = np.zeros((len(batch["index"]), most), np.int32)
            for row, index in enumerate(rows):
                wanted[row, : len(places[index])] = places[index]
            log_p = np.asarray(log_p_program(self.config)(self.prepared, batch["source"], wanted))
            for row, index in enumerate(rows):
                found[full[index]] = [self._candidates(each) for each in log_p[row, : len(places[index])]]
        return found

    def lines(self, lines: Iterable[str]) -> list[str]:
        """For every line, its masks separated by tabs; for each mask its candidates: `token probability, token probability`."""
        return [
            "\t".join(", ".join(f"{_shown(text)} {chance:.4f}" for text, chance in mask) for mask in masks)
            for masks in self.fill(lines)
        ]

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """`nll` in nats per masked token, `perplexity`, `accuracy` of masked tokens and their number, always under the same masks."""
        chosen = masking(self.data, self.assets.target_vocabulary)
        values = check_finite(scores(self.config, self.settings, chosen, self.prepared, stream(split), title))
        log.info(
            "%s: perplexity %.4g of masked tokens, accuracy %.2f %% (%s masked tokens)",
            *(title, values["perplexity"], 100 * values["accuracy"], f"{int(values['masked']):,}"),
        )
        return values, {}

    @cached_property
    def _mask(self) -> int:
        return self.assets.target_vocabulary.tokens.index(MASK)

    @cached_property
    def _unit(self) -> Unit:
        return unit_of(self.data, self.assets)

    def _encoded(self, number: int, line: str) -> Ids:
        parts = line.split(MASK)
        if len(parts) == 1:
            raise UserError(f"line {number}, {line[:60]!r}, has no {MASK}; put one where a token is wanted")
        if self.data.unit == "bpe":
            parts = [*(WHITE_AT_END.sub("", part) for part in parts[:-1]), parts[-1]]
        ids = [BOS]
        for part in parts[:-1]:
            ids += [*self._unit.ids(part).tolist(), self._mask]
        ids += [*self._unit.ids(parts[-1]).tolist(), EOS]
        if len(ids) > self.data.block:
            raise UserError(
                f"line {number} has {len(ids):,} tokens with its beginning and end, but the context has {self.data.block:,}; give a "
                "shorter line"
            )
        return np.array(ids, np.int32)

    def _candidates(self, log_p: np.ndarray) -> list[Candidate]:
        """The most probable tokens that are text. Raises: UserError for outputs that are not finite."""
        if not np.isfinite(log_p).all():
            raise not_finite("fill masks")
        order = [number for number in np.argsort(-log_p, kind="stable").tolist() if number > UNK]
        best = [number for number in order[: CANDIDATES + 1] if number != self._mask]
        return [Candidate(self._unit.text([number]), float(np.exp(log_p[number]))) for number in best[:CANDIDATES]]


def masking(data: DataConfig, vocabulary: Vocabulary) -> Masking:
    """How tokens of this vocabulary are masked."""
    return Masking(data.mask_share, vocabulary.tokens.index(MASK), len(vocabulary))


def scores(
    model: ModelConfig,
    settings: MaskedSettings,
    masking: Masking,
    variables: Variables,
    text: Stream,
    title: str,
    between: Callable[[], None] = lambda: None,
    limit: int = 0,
) -> dict[str, float]:
    """`nll` in nats per masked token, `perplexity`, `accuracy`, and the number of `masked` tokens, under masks that are always the same.

    `limit` is rounded up to whole blocks. See `one_layer.tasks.streams.Scorer` for the other arguments.
    """
    rows = max(1, settings.max_tokens // text.block)
    batches = validation_batches(text, masking, rows, limit)
    program = nll_program(model, ("source", "places"), right=True)
    with tqdm(desc=title, unit="batch", disable=None, leave=False) as bar:
        nll, targets, right = summed(program, variables, batches, between, bar.update).tolist()
    if not targets:
        raise _nothing_masked(title)
    mean = nll / targets
    return {"nll": mean, "perplexity": perplexity(mean), "accuracy": right / targets, "masked": targets}


def _nothing_masked(title: str) -> UserError:
    return UserError(
        f"no token of {title} is masked, so that there is nothing to score; give a longer text, or a larger data.mask_share"
    )


def _shown(text: str) -> str:
    """A token without the space before it; in quotes if nothing else would be seen."""
    return text.strip(" ") if text.strip() and text.strip(" ").isprintable() else repr(text)


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

    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        corpus = super().corpus(data, saved)
        chosen = masking(data, corpus.target_vocabulary)
        for name, split in {"valid": corpus.valid, **corpus.tests}.items():  # before training, which their scores end
            batches = validation_batches(stream(split), chosen, 1)
            if not any((batch["target"] != PAD).any() for batch in batches):
                raise _nothing_masked(name)
        return corpus

    def selectable(self, data: DataConfig, settings: MaskedSettings) -> tuple[str, ...]:
        return ("nll", "accuracy")

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> Updates:
        """Blocks of the text, whose masks depend on the seed, the epoch and the block alone."""
        text = stream(corpus.train)
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
        return partial(scores, model, settings, masking(data, assets.target_vocabulary))
