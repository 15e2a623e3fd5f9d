"""Beam search with a model over many sentences. Sentences are batched by length; sources are encoded and masks made once per batch."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int
from tqdm import tqdm

from one_layer.data.preparation.parallel import in_threads
from one_layer.data.search_batches import batches_for_search
from one_layer.data.special_tokens import EOS, PAD
from one_layer.layers.materializing import materialize
from one_layer.layers.trees import Variables
from one_layer.models import ModelConfig
from one_layer.models.decoding import Decoder, reorder
from one_layer.models.sharding import Devices, fetch
from one_layer.tasks.model import not_finite
from one_layer.tasks.translation.beam_search import Hypotheses, beam_search
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tasks.work import search_work

Ids = Int[np.ndarray, "_"]

# A batch is searched until its last sentence has ended. On a CPU, more rows save less than they wait (docs/speed.md).
_ROWS_ON_CPU = 32
# One batch does not keep two cores busy: many of its products are small, and between them one core works. An accelerator searches the
# next batch while the host reads what it found. Several devices have exchanges, which must come in the same order everywhere.
_AT_ONCE = 2
# An accelerator takes so many times evaluation.max_tokens where this share of its memory holds them: a step reads all weights, however
# many rows it has.
_TIMES, _SHARE = 16, 0.25


class Found(NamedTuple):
    """A translation (ids that end in eos), and its Σ log p / length^penalty."""

    tokens: Ids
    score: float


EMPTY = Found(np.array([EOS], np.int32), 0.0)  # the translation of a sentence without tokens


def translated(
    config: ModelConfig, settings: SearchSettings, variables: Variables, sentences: Sequence[Ids], *more: Any
) -> list[Ids]:
    """The best translation of every sentence, in order: that of `best_translations`, which has the same arguments."""
    return [best.tokens for best, *_ in best_translations(config, settings, variables, sentences, *more)]


def best_translations(
    config: ModelConfig,
    settings: SearchSettings,
    variables: Variables,
    sentences: Sequence[Ids],
    title: str = "beam search",
    between: Callable[[], None] = lambda: None,
    n: int = 1,
) -> list[list[Found]]:
    """The `n` best translations of every sentence, or as many as there are, best first. `between` is called before every batch.

    Scores are in nats. A sentence without tokens is not searched: its only translation is empty too, whoever asks for it.

    `variables` may be a model's own. If `one_layer.tasks.model.prepared` has applied the masks already, no batch selects them again.

    Raises: UserError if the model's outputs are not finite.
    """
    found = [[EMPTY]] * len(sentences)
    full = [place for place, ids in enumerate(sentences) if len(ids) > 1]
    if not full:
        return found
    devices, program = Devices.holding(variables), search_program(config, settings)
    texts = [sentences[place] for place in full]
    on_cpu = devices.platform == "cpu"
    tokens, most_rows = settings.max_tokens, _ROWS_ON_CPU if on_cpu else None
    if not on_cpu:
        tokens = tokens_that_fit(config, settings, max(map(len, texts)), devices.memory_left())
    alone = devices.many or not (on_cpu or tokens > settings.max_tokens)  # the memory may hold no second batch
    batches = list(batches_for_search(texts, tokens, most_rows))

    def searched(batch: dict[str, np.ndarray]) -> Hypotheses:
        lengths = np.sum(batch["source"] != PAD, axis=1).tolist()
        limits = np.array([settings.longest(length) for length in lengths], np.int32)
        active = devices.rows(batch["index"] >= 0, False)
        return fetch(program(variables, devices.rows(batch["source"]), devices.rows(limits), active))

    with tqdm(total=len(full), desc=title, unit="sentence", disable=None, leave=False) as bar:
        results = in_threads(searched, batches, 1 if alone else _AT_ONCE, between)
        for batch, best in zip(batches, results, strict=True):
            rows = np.flatnonzero(batch["index"] >= 0)
            if not np.isfinite(best.scores[rows, 0]).all():
                raise not_finite("translate")
            for row in rows:
                each = zip(best.tokens[row], best.lengths[row], best.scores[row].tolist(), strict=True)
                found[full[batch["index"][row]]] = [Found(ids[:end], score) for ids, end, score in each if end][:n]
            bar.update(len(rows))
    return found


def tokens_that_fit(config: ModelConfig, settings: SearchSettings, longest: int, left: int) -> int:
    """The padded tokens of a batch on an accelerator with `left` bytes of memory, for sentences of at most `longest` tokens."""
    each = search_work(config, longest, settings.beam, settings.longest(longest)).bytes / longest
    return min(max(int(_SHARE * left / each), settings.max_tokens), _TIMES * settings.max_tokens)


@lru_cache(maxsize=8)  # tracing takes longer than the search of a few lines, and a run scores several times
def search_program(config: ModelConfig, settings: SearchSettings) -> Any:
    """The program (variables, source, limits, active) -> hypotheses, compiled once for each padded shape."""

    def search_batch(variables: Variables, source: Array, limit: Array, active: Array) -> Hypotheses:
        longest, penalty = settings.longest(source.shape[1]), settings.length_penalty
        options = {"beam": settings.beam, "limit": limit, "length_penalty": penalty, "active": active}
        return search(config, variables, source, max_length=longest, **options)

    return jax.jit(search_batch)


def search(
    config: ModelConfig, variables: Variables, source: Int[Array, "batch length"], *, max_length: int, **options: Any
) -> Hypotheses:
    """`beam_search` with its `options` for one padded batch, as one function of the model's variables.

    `variables` may be a model's own or, which is much faster, those that `materialize` returns.
    """
    decoder = Decoder(config, materialize(variables, config.supermask), source)
    cache = decoder.start(options["beam"], max_length + 1)
    return beam_search(decoder.step, cache, source.shape[0], max_length=max_length, reorder=reorder, **options)
