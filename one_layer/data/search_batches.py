"""Batches for a search: few shapes for any text, and short sentences do not wait for long ones."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from one_layer.data.batches import Batch, Ids, in_rows, with_a_key
from one_layer.data.tokens import TokenStore

_NARROWEST = 24  # tokens: the smallest width of a search batch
# The fixed cost of a batch's step, in rows: a CPU reads all weights in the time that it computes this many rows.
_FIXED = 8


def batches_for_search(source: Ids, max_tokens: int, most_rows: int | None = None) -> Iterator[Batch]:
    """Batches with every sentence once, shortest first, of at most `max_tokens` padded tokens and `most_rows` rows, or of one sentence.

    Widths are 24, 48, 96, ... tokens, and rows are 1, 8, 32, 128, .... This gives few shapes for any text, and each shape costs one
    compilation. A sentence goes into the narrowest width that holds it, so that a long sentence does not slow down shorter ones; or into
    a wider one if that saves a batch and costs less. Yields `source` and `index` as `evaluation_batches` does.
    """
    sources = TokenStore.of(source)
    order = np.argsort(sources.lengths, kind="stable")
    limits = max_tokens, most_rows or max_tokens
    for width, members in _joined(_by_width(sources.lengths, order), limits):
        rows = _cheapest_rows(len(members), width, limits)
        for index in in_rows(members, rows):
            yield {"source": with_a_key(sources.padded(index, width)), "index": index.astype(np.int32)}


def _by_width(lengths: Int[np.ndarray, "pairs"], order: Int[np.ndarray, "pairs"]) -> list[tuple[int, np.ndarray]]:
    """The widths that are needed, ascending, each with its sentences in `order`."""
    widths = _NARROWEST * 2 ** np.ceil(np.log2(np.maximum(lengths[order] / _NARROWEST, 1))).astype(np.int64)
    return [(int(width), order[widths == width]) for width in np.unique(widths)]


def _joined(buckets: list[tuple[int, np.ndarray]], limits: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
    """Joins a bucket with the next wider one if that is cheaper. `limits` are those of the tokens and of the rows of a batch."""
    kept: list[tuple[int, np.ndarray]] = []
    for width, members in buckets:
        if kept:
            narrow, others = kept[-1]
            both = np.concatenate([others, members])
            apart = _cost(len(others), narrow, limits) + _cost(len(members), width, limits)
            if _cost(len(both), width, limits) <= apart:
                kept[-1] = width, both
                continue
        kept.append((width, members))
    return kept


def _cost(members: int, width: int, limits: tuple[int, int]) -> int:
    """The cost to search a bucket, in tokens: for every batch, its rows and the fixed cost, times its width (the number of steps)."""
    rows = _cheapest_rows(members, width, limits)
    return -(-members // rows) * (rows + _FIXED) * width


def _cheapest_rows(members: int, width: int, limits: tuple[int, int]) -> int:
    """The number of rows, of 1, 8, 32, 128, ..., that costs least."""
    max_tokens, most_rows = limits
    most = max(1, min(max_tokens // width, most_rows))
    rungs = [1, *(8 * 4**rung for rung in range(20))]
    return min((rung for rung in rungs if rung <= most), key=lambda rows: -(-members // rows) * (rows + _FIXED))
