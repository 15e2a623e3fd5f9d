"""Blocks of text with some tokens replaced, for masked language models (Devlin et al. 2019; RoBERTa's dynamic masking, arXiv 1907.11692).

A block begins with `<s>`, and its other tokens are a part of the text, across the ends of sentences ("full sentences" in RoBERTa). Of the
tokens that are to be predicted, 80 % become `<mask>`, 10 % another token at random, and 10 % stay. Special tokens are left alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Int32

from one_layer.data.batches import Batch, in_rows
from one_layer.data.special_tokens import BOS, PAD, UNK
from one_layer.data.stream import Stream, StreamBatches

_FIXED = 2**64 - 1  # in place of a seed and of an epoch, for masks that are always the same


class Masking(NamedTuple):
    """`share` of the tokens are predicted; `mask` is the id of `<mask>`, and ids of tokens are below `types`."""

    share: float
    mask: int
    types: int

    def places(self, width: int) -> int:
        """The most tokens of a block of `width` that are predicted."""
        return int(self.share * width) + 1

    def batch(self, text: Int32[np.ndarray, "rows width"], keys: list[tuple[int, int, int]]) -> Batch:
        """`source` [rows, width + 1] with `<s>` and the replaced tokens; `places` and `target` [rows, places], padded with 0 and pads.

        A row depends on its text and its key (seed, epoch, example) alone.
        """
        rows, width = text.shape
        source = np.concatenate([np.full((rows, 1), BOS, np.int32), text], axis=1)
        places, target = (np.full((rows, self.places(width)), value, np.int32) for value in (0, PAD))
        for row, (seed, epoch, example) in enumerate(keys):
            random = np.random.Generator(
                np.random.Philox(key=np.array([seed, epoch], np.uint64), counter=[0, 0, 0, example])
            )
            chosen, new = self._replaced(text[row], random)
            places[row, : len(chosen)], target[row, : len(chosen)] = chosen + 1, text[row, chosen]
            source[row, chosen + 1] = new
        return {"source": source, "places": places, "target": target}

    def _replaced(
        self, ids: Int32[np.ndarray, " width"], random: np.random.Generator
    ) -> tuple[Int[np.ndarray, " chosen"], Int[np.ndarray, " chosen"]]:
        """The places that are predicted, in order, and what stands there instead."""
        real = np.flatnonzero((ids > UNK) & (ids != self.mask))
        number = int(self.share * len(real) + random.random())  # on average exactly the share, as in fairseq
        chosen = np.sort(random.permutation(real)[:number])
        other = random.integers(UNK + 1, self.types - 1, len(chosen))
        other += other >= self.mask  # any token but <mask>
        fate = random.random(len(chosen))
        return chosen, np.where(fate < 0.8, self.mask, np.where(fate < 0.9, other, ids[chosen]))


class MaskedBatches(StreamBatches):
    """Blocks as `StreamBatches` orders them, one token shorter than the context, with masks that are new in every epoch."""

    def __init__(self, text: Stream, masking: Masking, *, max_tokens: int, accumulate: int = 1, seed: int = 0) -> None:
        blocks, tokens = Stream(text.tokens, text.block - 1), max_tokens * (text.block - 1) // text.block
        super().__init__(blocks, max_tokens=tokens, accumulate=accumulate, seed=seed)
        self._masking = masking

    def describe(self) -> str:
        return f"{super().describe()}, and <s>"

    def __getitem__(self, number: int) -> Batch:
        text = super().__getitem__(number)["target"]
        epoch, begins = self.begins(number)
        keys = [(self._seed, epoch, max(int(begin), 0)) for begin in begins]
        batch = self._masking.batch(text.reshape(len(keys), -1), keys)
        return {name: array.reshape(*text.shape[:2], -1) for name, array in batch.items()}


def validation_batches(text: Stream, masking: Masking, rows: int, limit: int = 0) -> Iterator[Batch]:
    """Every token of a text once, in blocks, with masks that are always the same.

    `limit`: only so many tokens, rounded up to whole blocks (0: all).
    """
    total, width = len(text.tokens), text.block - 1
    begins = np.arange(0, min(total, limit) if limit else total, width)
    for first in in_rows(begins, rows):
        target = text.read(first, width)[0]["target"]
        yield masking.batch(target, [(_FIXED, _FIXED, max(int(begin), 0)) for begin in first])
