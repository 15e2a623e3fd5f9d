"""A trained masked language model: it fills masks in lines, and scores texts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from one_layer.data.batches import evaluation_batches
from one_layer.data.corpus import Split
from one_layer.data.special_tokens import BOS, EOS, UNK
from one_layer.data.stream_corpus import stream, unit_of
from one_layer.data.text.units import MASK, Ids, Unit
from one_layer.models import build
from one_layer.system.errors import UserError
from one_layer.tasks.masked_lm.scoring import MaskedScorer, masking
from one_layer.tasks.model import TrainedModel, not_finite
from one_layer.tasks.streams import check_finite

log = logging.getLogger(__name__)
CANDIDATES = 5  # tokens that are given for each mask
WHITE_AT_END = re.compile(r"[^\S\x1c-\x1f]+\Z")  # Unicode's white space, which is not quite Python's


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
        mask = self.assets.target_vocabulary.tokens.index(MASK)
        places = [np.flatnonzero(each == mask) for each in ids]
        most = max(map(len, places))
        for batch in evaluation_batches(ids, None, self.settings.max_tokens, 1):
            rows = [index for index in batch["index"].tolist() if index >= 0]
            wanted = np.zeros((len(batch["index"]), most), np.int32)
            for row, index in enumerate(rows):
                wanted[row, : len(places[index])] = places[index]
            log_p = np.asarray(self._log_p(self.prepared, batch["source"], wanted))
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
        values = check_finite(MaskedScorer(self.config, self.settings, chosen)(self.prepared, stream(split), title))
        log.info(
            "%s: perplexity %.4g of masked tokens, accuracy %.2f %% (%s masked tokens)",
            *(title, values["perplexity"], 100 * values["accuracy"], f"{int(values['masked']):,}"),
        )
        return values, {}

    @cached_property
    def _unit(self) -> Unit:
        return unit_of(self.data, self.assets)

    def _encoded(self, number: int, line: str) -> Ids:
        parts = line.split(MASK)
        if len(parts) == 1:
            raise UserError(f"line {number}, {line[:60]!r}, has no {MASK}; put one where a token is wanted")
        if self.data.unit == "bpe":
            parts = [*(WHITE_AT_END.sub("", part) for part in parts[:-1]), parts[-1]]
        mask = self.assets.target_vocabulary.tokens.index(MASK)
        ids = [BOS]
        for part in parts[:-1]:
            ids += [*self._unit.ids(part).tolist(), mask]
        ids += [*self._unit.ids(parts[-1]).tolist(), EOS]
        if len(ids) > self.data.block:
            raise UserError(
                f"line {number} has {len(ids):,} tokens with its beginning and end, but the context has {self.data.block:,}; give a "
                "shorter line"
            )
        return np.array(ids, np.int32)

    @cached_property
    def _log_p(self) -> Any:
        network = build(self.config)

        def log_p(variables: dict[str, Any], source: Array, places: Array) -> Array:
            logits: Any = network.apply(variables, source, places)
            return jax.nn.log_softmax(logits)

        return jax.jit(log_p)

    def _candidates(self, log_p: np.ndarray) -> list[Candidate]:
        """The most probable tokens that are text. Raises: UserError for outputs that are not finite."""
        if not np.isfinite(log_p).all():
            raise not_finite("fill masks")
        order = [number for number in np.argsort(-log_p, kind="stable").tolist() if number > UNK]
        mask = self.assets.target_vocabulary.tokens.index(MASK)
        best = [number for number in order[: CANDIDATES + 1] if number != mask]
        return [Candidate(self._unit.text([number]), float(np.exp(log_p[number]))) for number in best[:CANDIDATES]]


def _shown(text: str) -> str:
    """A token without the space before it; in quotes if nothing else would be seen."""
    return text.strip(" ") if text.strip() and text.strip(" ").isprintable() else repr(text)
