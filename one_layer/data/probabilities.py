"""What a teacher says of training text: for each target, its k largest probabilities. In a file for pairs, and as arrays of batches."""

from pathlib import Path

import numpy as np
from jaxtyping import Int, Int32, Integer, Shaped

from one_layer.data.batches import Batch, TrainingBatches, Updates
from one_layer.data.special_tokens import PAD
from one_layer.data.tokens import fitting_type
from one_layer.system.errors import UserError


def record(k: int, classes: int) -> np.dtype:
    """What the file has of a target: the k largest of `classes` log-probabilities in 16 bits, and the ids of these classes."""
    return np.dtype([("log_p", np.float16, (k,)), ("ids", fitting_type(classes), (k,))])


def shortest_first(source: Int[np.ndarray, "pairs"], target: Int[np.ndarray, "pairs"]) -> Int[np.ndarray, "pairs"]:
    """The pairs in the order of the file, which is that of `evaluation_batches`, from the lengths of their sides."""
    return np.argsort(np.maximum(source, target), kind="stable")


class Probabilities:
    """The file: a record for each target of the training pairs, memory-mapped. Pairs are in the order `order`."""

    def __init__(
        self, path: Path, kind: np.dtype, counts: Int[np.ndarray, "pairs"], order: Int[np.ndarray, "pairs"]
    ) -> None:
        """`counts`: the targets of each pair. Raises: UserError for a file of another size."""
        size, expected = path.stat().st_size, int(counts.sum()) * kind.itemsize
        if size != expected:
            raise UserError(
                f"{path} has {size:,} bytes, but the teacher's probabilities take {expected:,}; delete it, then run again to recreate it"
            )
        self._records = np.memmap(path, kind, "r")
        self._counts, self._starts = counts, np.empty(len(counts), np.int64)
        self._starts[order] = np.cumsum(counts[order]) - counts[order]

    def of(self, pairs: Int[np.ndarray, "rows"], width: int) -> Shaped[np.ndarray, "rows width"]:
        """The records of the first `width` targets of these pairs. Where no target is, it is any record."""
        places = np.arange(width)
        real = places < np.where(pairs < 0, 0, self._counts[pairs])[:, None]
        return self._records[np.where(real, self._starts[pairs][:, None] + places, 0)]


def with_probabilities(
    batch: Batch, ids: Integer[np.ndarray, "*rows k"], log_p: Shaped[np.ndarray, "*rows k"]
) -> Batch:
    """`batch` with `teacher_ids`, and with `teacher_p`, the probabilities of these classes. Where no target is, all are 0.

    `ids` has an axis for the positions of `target`, or none where a row has one target.
    """
    target = batch["target"] if ids.ndim > batch["target"].ndim else batch["target"][..., 0]
    p = np.exp(log_p.astype(np.float32))
    p /= np.maximum(p.sum(axis=-1, keepdims=True), 1)  # 16 bits may have rounded their sum up
    p = np.where((target != PAD)[..., None], p, np.float32(0))
    return {**batch, "teacher_ids": ids.astype(np.int32), "teacher_p": p}


class WithProbabilities(Updates):
    """The same batches in the same order, with what a teacher says of their targets; a subclass adds it."""

    def __init__(self, batches: Updates) -> None:
        self._batches = batches

    @property
    def batches_per_epoch(self) -> int:
        return self._batches.batches_per_epoch

    def describe(self) -> str:
        return self._batches.describe()

    def rows_of(self, number: int) -> int:
        return self._batches.rows_of(number)

    def of_each_shape(self, start: int) -> list[int]:
        return self._batches.of_each_shape(start)


class TaughtBatches(WithProbabilities):
    """Batches of pairs, with what the file says of their targets."""

    _batches: TrainingBatches

    def __init__(self, batches: TrainingBatches, probabilities: Probabilities, of_rows: bool) -> None:
        """`of_rows`: a row has one target, as in classification."""
        super().__init__(batches)
        self._probabilities, self._of_rows = probabilities, of_rows

    def __getitem__(self, number: int) -> Batch:
        batch = self._batches[number]
        pairs, width = self._batches.pairs(number)
        found = self._probabilities.of(pairs, 1 if self._of_rows else width)
        shape = batch["target"].shape[:2] if self._of_rows else batch["target"].shape
        ids, log_p = (found[name].reshape(*shape, -1) for name in ("ids", "log_p"))
        return with_probabilities(batch, ids, log_p)


def appended(ids: Int32[np.ndarray, "targets k"], log_p: Shaped[np.ndarray, "targets k"], kind: np.dtype) -> bytes:
    """The bytes of the records of these targets, in order."""
    records = np.empty(len(ids), kind)
    records["ids"], records["log_p"] = ids, log_p
    return records.tobytes()
