"""One long text as ids, and its blocks as the batches of a language model. It may be larger than memory."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from jaxtyping import Int, Int32, Integer

from one_layer.data.batches import Batch, Updates, in_rows
from one_layer.data.preparation.spill import temporary_file, write_whole
from one_layer.data.special_tokens import EOS, PAD
from one_layer.data.tokens import TokenStore
from one_layer.system.errors import UserError

_CHUNK = 1 << 20  # tokens read at once


class Stream(TokenStore):
    """A text as one array of ids, in memory or memory-mapped. As a sequence, its items are its blocks of `block` tokens."""

    def __init__(self, tokens: Integer[np.ndarray, " tokens"], block: int) -> None:
        starts = np.arange(0, len(tokens), block)
        super().__init__(tokens, starts, np.minimum(block, len(tokens) - starts))
        self.block = block

    def chunks(self) -> Iterator[Int32[np.ndarray, " tokens"]]:
        """Yields all ids in order, in pieces of bounded size."""
        for first in range(0, len(self.tokens), _CHUNK):
            yield self.tokens[first : first + _CHUNK].astype(np.int32)

    def read(self, first: Int[np.ndarray, " rows"], width: int) -> tuple[Batch, Int[np.ndarray, "rows width"]]:
        """`source` and `target` [rows, width] from the positions `first` on (-1 for an empty row), and the places of the targets.

        A source is the token before its target; before the first token of the text it is eos. Beyond the text there are pads.
        """
        places = first[:, None] + np.arange(width)
        real = (first >= 0)[:, None] & (places < len(self.tokens))
        safe = np.where(real, places, 0)
        before = np.where(safe > 0, self.tokens[np.maximum(safe - 1, 0)].astype(np.int32), EOS)
        target = self.tokens[safe].astype(np.int32)
        pad = np.int32(PAD)
        return {"source": np.where(real, before, pad), "target": np.where(real, target, pad)}, places


def on_disk(pieces: Iterable[Int32[np.ndarray, " tokens"]], kind: type[np.unsignedinteger]) -> np.ndarray:
    """All ids in one memory-mapped array of the type `kind`, in an unnamed temporary file. Raises: UserError if it cannot be written."""
    file = temporary_file()
    for ids in pieces:
        write_whole(file, ids.astype(kind).tobytes())
    return np.asarray(np.memmap(file, kind, "r")) if file.tell() else np.zeros(0, kind)


class StreamBatches(Updates):
    """Blocks of a text, each as long as the context, in an order that depends only on (seed, epoch).

    Every epoch begins at another place near the start of the text, cuts the text into blocks from there, and shuffles them. So an epoch
    has every token once, except at the ends, and blocks begin everywhere. The last batch is filled with empty rows.

    Raises: UserError for a text that is shorter than one block.
    """

    def __init__(self, text: Stream, *, max_tokens: int, accumulate: int = 1, seed: int = 0) -> None:
        tokens, self._block = len(text.tokens), text.block
        if tokens < self._block:
            raise UserError(
                f"the training text has {tokens:,} tokens, fewer than the {self._block:,} of one block; give more text, or a "
                "smaller data.block"
            )
        self._text, self._seed, self._accumulate = text, seed, accumulate
        self._blocks = max(1, (tokens + 1) // self._block - 1)
        self._places = min(self._block, tokens - self._blocks * self._block + 1)  # where an epoch may begin
        most = max(1, max_tokens // self._block // accumulate) * accumulate
        self._rows = min(most, -(-self._blocks // accumulate) * accumulate)
        self._order = lru_cache(maxsize=2)(self._epoch)  # two epochs, because prefetching reads into the next one

    @property
    def batches_per_epoch(self) -> int:
        return -(-self._blocks // self._rows)

    def describe(self) -> str:
        return f"batches: {self.batches_per_epoch:,} updates an epoch, each of {self._rows} blocks of {self._block:,} tokens"

    def begins(self, number: int) -> tuple[int, Int[np.ndarray, " rows"]]:
        """The epoch of an update, and where its blocks begin in the text (-1: an empty row), by micro-batch and row."""
        epoch, place = divmod(int(number), self.batches_per_epoch)
        return epoch, self._share(self._order(epoch)[place])

    def rows_of(self, number: int) -> int:
        return self._rows

    def __getitem__(self, number: int) -> Batch:
        batch, _ = self._text.read(self.begins(number)[1], self._block)
        return {name: array.reshape(self._accumulate, -1, self._block) for name, array in batch.items()}

    def _epoch(self, epoch: int) -> Int[np.ndarray, "batches rows"]:
        """Where every block of an epoch begins, in order; -1 stands for an empty row."""
        random = np.random.Generator(np.random.Philox(key=np.array([self._seed % 2**64, epoch], np.uint64)))
        begins = random.integers(self._places) + self._block * random.permutation(self._blocks)
        filled = in_rows(begins, self._rows)
        # Rows go to the micro-batches in turn, so that the empty rows of the last batch spread over them.
        shape = (len(filled), self._rows // self._accumulate, self._accumulate)
        return filled.reshape(shape).swapaxes(1, 2).reshape(len(filled), -1)


def windows(text: Stream, stride: int, rows: int, limit: int) -> Iterator[Batch]:
    """Batches of overlapping windows, of one block each, in which every token of the text is a target exactly once.

    A window begins `stride` tokens after the one before it, and only its last tokens, which no earlier window had, are targets. So every
    target but those of the first window sees at least block - stride tokens before it. A stride above the block would leave out tokens.
    `limit`: only so many tokens, from the start (0: all).
    """
    total, block = len(text.tokens), text.block
    total = min(total, limit) if limit else total
    begins = np.arange(0, 1 + max(0, -(-(total - block) // stride))) * stride
    for first in in_rows(begins, rows):
        batch, places = text.read(first, block)
        scored = (places < total) & ((first[:, None] == 0) | (places >= first[:, None] + block - stride))
        yield {**batch, "target": np.where(scored, batch["target"], np.int32(PAD))}
