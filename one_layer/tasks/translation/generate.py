"""Beam search with a model over many sentences: batched by length, the source encoded once, masks made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int
from tqdm import tqdm

from one_layer.data.batches import evaluation_batches
from one_layer.errors import UserError
from one_layer.models import ModelConfig, build, empty_cache
from one_layer.tasks.translation.beam_search import Hypotheses, beam_search
from one_layer.tasks.translation.settings import SearchSettings

Variables = dict[str, Any]


@dataclass(frozen=True)
class Hypothesis:
    """The best translation of a sentence: target ids that end in eos, and score = Σ log p / length^penalty, in nats."""

    tokens: Int[np.ndarray, "length"]
    score: float


class Generator:
    """Translates ids to ids; compiled once for each padded shape and kept."""

    def __init__(self, config: ModelConfig, settings: SearchSettings, beam: int | None = None) -> None:
        self.config, self.settings, self.beam = config, settings, beam or settings.beam
        self._search = jax.jit(self._search_batch)

    def __call__(
        self, variables: Variables, sentences: Sequence[Int[np.ndarray, "_"]], title: str = "beam search"
    ) -> list[Hypothesis]:
        """The best hypothesis of every sentence (ids that end in eos), in order.

        `variables` may be a model's; with the masks multiplied out once (`one_layer.tasks.model.prepared`) no step selects any.

        Raises: UserError where the model's numbers are not finite.
        """
        found: dict[int, Hypothesis] = {}
        # A shape costs a compilation, which a few sentences are not worth.
        buckets = min(self.settings.buckets, 1 + len(sentences) // 100)
        batches = evaluation_batches(sentences, None, self.settings.max_tokens, buckets)
        with tqdm(total=len(sentences), desc=title, unit="sentence", disable=None, leave=False) as bar:
            for batch in batches:
                best = jax.device_get(self._search(variables, batch["source"], batch["index"] >= 0))
                rows = [row for row in range(len(batch["index"])) if batch["index"][row] >= 0]
                for row in rows:
                    length = int(best.lengths[row, 0])
                    score = float(best.scores[row, 0])
                    if not np.isfinite(score):
                        raise UserError(
                            "the model's logits are not finite: this checkpoint cannot translate; take another"
                        )
                    found[int(batch["index"][row])] = Hypothesis(best.tokens[row, 0, :length], score)
                bar.update(len(rows))
        return [found[index] for index in range(len(sentences))]

    def _search_batch(self, variables: Variables, source: Int[Array, "batch length"], active: Array) -> Hypotheses:
        return search(
            self.config,
            variables,
            source,
            beam=self.beam,
            max_length=int(self.settings.max_length_a * source.shape[1] + self.settings.max_length_b),
            length_penalty=self.settings.length_penalty,
            active=active,
        )


def search(
    config: ModelConfig,
    variables: Variables,
    source: Int[Array, "batch length"],
    *,
    beam: int,
    max_length: int,
    length_penalty: float,
    active: Array | None = None,
) -> Hypotheses:
    """Beam search for one padded batch; `variables` may be a model's or, much quicker, what `materialize` makes of them."""
    model = build(config)
    _, memory = model.apply(variables, source, method="remember", mutable=["memory"])

    def tokens_to_logits(tokens: Array, position: Array, cache: Variables) -> tuple[Array, Variables]:
        state = {**variables, **memory, "cache": cache}
        logits, changed = model.apply(state, tokens, position, source, method="step", mutable=["cache"])
        return logits, changed["cache"]

    batch = source.shape[0]
    cache = empty_cache(config, batch * beam, max_length + 1)
    return beam_search(
        tokens_to_logits,
        cache,
        batch,
        beam=beam,
        max_length=max_length,
        length_penalty=length_penalty,
        active=active,
    )
