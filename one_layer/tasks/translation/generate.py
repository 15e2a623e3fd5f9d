"""Beam search with a model over many sentences. Sentences are batched by length; sources are encoded and masks made once per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Int
from tqdm import tqdm

from one_layer.data.search_batches import batches_for_search
from one_layer.data.special_tokens import EOS, PAD
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices, fetch
from one_layer.system.threads import in_threads
from one_layer.tasks.model import not_finite
from one_layer.tasks.translation.beam_search import Hypotheses
from one_layer.tasks.translation.search import search
from one_layer.tasks.translation.settings import SearchSettings

Variables = dict[str, Any]


@dataclass(frozen=True)
class Hypothesis:
    """The best translation of a sentence: target ids that end in eos, and score = Σ log p / length^penalty, in nats."""

    tokens: Int[np.ndarray, "length"]
    score: float


# A batch is searched until its last sentence has ended. On a CPU, more rows save less than they wait (docs/speed.md).
_ROWS_ON_CPU = 32
# One batch does not keep two cores busy: many of its products are small, and between them one core works. Several devices have exchanges,
# which must come in the same order everywhere, so they search one batch at a time.
_AT_ONCE_ON_CPU = 2

EMPTY = Hypothesis(np.array([EOS], np.int32), 0.0)  # of a sentence without tokens


class Generator:
    """Translates ids to ids. A program is compiled once for each padded shape, and kept."""

    def __init__(self, config: ModelConfig, settings: SearchSettings, beam: int | None = None) -> None:
        self.settings = settings
        self._search = _program(config, settings, beam or settings.beam)

    def __call__(
        self,
        variables: Variables,
        sentences: Sequence[Int[np.ndarray, "_"]],
        title: str = "beam search",
        between: Callable[[], None] = lambda: None,
    ) -> list[Hypothesis]:
        """The best hypothesis of every sentence (ids that end in eos), in order. `between` is called before every batch.

        A sentence without tokens is not searched: its translation is empty too, whoever asks for it.

        `variables` may be a model's own. If `one_layer.tasks.model.prepared` has applied the masks already, no batch selects them again.

        Raises: UserError if the model's outputs are not finite.
        """
        full = [index for index, ids in enumerate(sentences) if len(ids) > 1]
        best = self._best(variables, [sentences[index] for index in full], title, between) if full else []
        found = dict(zip(full, best, strict=True))
        return [found.get(index, EMPTY) for index in range(len(sentences))]

    def lower(self, variables: Variables, *batch: Any) -> Any:
        """The program of a search before it is compiled, for shapes in the place of arrays: the source's ids, limits and active rows."""
        return self._search.lower(variables, *batch)

    def _best(
        self,
        variables: Variables,
        sentences: Sequence[Int[np.ndarray, "_"]],
        title: str,
        between: Callable[[], None],
    ) -> list[Hypothesis]:
        found: dict[int, Hypothesis] = {}
        devices = Devices.holding(variables)
        on_cpu = devices.platform == "cpu"
        batches = list(batches_for_search(sentences, self.settings.max_tokens, _ROWS_ON_CPU if on_cpu else None))

        def search(batch: dict[str, np.ndarray]) -> Hypotheses:
            lengths = np.sum(batch["source"] != PAD, axis=1).tolist()
            limits = np.array([self.settings.longest(length) for length in lengths], np.int32)
            active = devices.rows(batch["index"] >= 0, False)
            return fetch(self._search(variables, devices.rows(batch["source"]), devices.rows(limits), active))

        with tqdm(total=len(sentences), desc=title, unit="sentence", disable=None, leave=False) as bar:
            results = in_threads(search, batches, _AT_ONCE_ON_CPU if on_cpu and not devices.many else 1, between)
            for batch, best in zip(batches, results, strict=True):
                rows = [row for row in range(len(batch["index"])) if batch["index"][row] >= 0]
                for row in rows:
                    length = int(best.lengths[row, 0])
                    score = float(best.scores[row, 0])
                    if not np.isfinite(score):
                        raise not_finite("translate")
                    found[int(batch["index"][row])] = Hypothesis(np.asarray(best.tokens)[row, 0, :length], score)
                bar.update(len(rows))
        return [found[index] for index in range(len(sentences))]


@lru_cache(maxsize=8)  # tracing takes longer than the search of a few lines, and a run scores several times
def _program(config: ModelConfig, settings: SearchSettings, beam: int) -> Any:
    def search_batch(
        variables: Variables,
        source: Int[Array, "batch length"],
        limit: Int[Array, "batch"],
        active: Bool[Array, "batch"],
    ) -> Hypotheses:
        return search(
            config,
            variables,
            source,
            beam=beam,
            max_length=settings.longest(source.shape[1]),
            limit=limit,
            length_penalty=settings.length_penalty,
            active=active,
        )

    return jax.jit(search_batch)
