"""How many tokens of a text a classifier reads where `data.max_length` is 0: so many that nearly all training texts are read whole."""

from __future__ import annotations

import numpy as np

from one_layer.data.corpus import Corpus
from one_layer.runs.settings import RunConfig, with_values

_MOST, _WHOLE = 512, 0.95  # tokens at most, and the share of the training texts that are whole where these are enough


def longest_allowed(run: RunConfig) -> RunConfig:
    """The run with the most tokens that may be chosen: 512, or as many as the model has positions."""
    positions = run.model_config(_MOST, _MOST)
    most = min(_MOST, positions.max_positions) if positions.position_rows else _MOST
    return with_values(run, {"data.max_length": most})


def with_length(run: RunConfig, corpus: Corpus) -> tuple[RunConfig, list[str]]:
    """The run with the length that the training text needs, and a line for people. That of `corpus` is cut to the most that is allowed."""
    lengths = corpus.train.source.lengths
    chosen = int(np.quantile(lengths, _WHOLE, method="higher"))
    cut = int((lengths > chosen).sum()) if chosen < run.data.max_length else int((lengths == chosen).sum())
    return with_values(run, {"data.max_length": chosen}), [
        f"chosen: data.max_length={chosen} ({len(lengths) - cut:,} of {len(lengths):,} training texts are certainly read whole)"
    ]
