"""Distillation by words: a teacher's probabilities of each target are a part of the loss (`one_layer.tasks.losses.Distil`).

Hinton et al. 2015 (arXiv 1503.02531); for words, Kim and Rush 2016 (arXiv 1606.07947), section 3.1. A pair has the same targets in every
epoch. So the teacher reads each pair once, and its k largest probabilities are kept in a file. A language model has other blocks, and
other masks, in every epoch: there the teacher reads each batch before the student does.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data.batches import Batch, Updates, evaluation_batches
from one_layer.data.corpus import Corpus
from one_layer.data.probabilities import (
    Probabilities,
    TaughtBatches,
    WithProbabilities,
    appended,
    record,
    shortest_first,
    with_probabilities,
)
from one_layer.data.special_tokens import PAD
from one_layer.models import build
from one_layer.models.sharding import Devices, fetch
from one_layer.runs.digests import digest
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.system.files import continued
from one_layer.tasks.losses import TOP_K, Distil
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)

_TEXTS = 8192  # that the teacher reads between two lines of the log


class Lessons(NamedTuple):
    """What a teacher says of the training text. `key` is a digest of all that decides it.

    `beside` gives batches `teacher_ids` and `teacher_p` (`one_layer.data.probabilities.with_probabilities`).
    """

    key: str
    beside: Callable[[Any], Updates]


def lessons_of(run: RunConfig, corpus: Corpus, folder: RunFolder, teacher: TrainedModel | None) -> Lessons | None:
    """What `teacher` says of the training text of `corpus`; None where `train.distil` is 0.

    The file of a text of pairs is in `data.store`, or else in the run's folder, and runs of one store share it. After an interruption, the
    next call goes on behind the last batch. While another process is writing the file, this one waits. Raises: UserError for a damaged one.
    """
    if Distil.of(run.train) is None or teacher is None:
        return None
    if teacher.assets.vocabularies != corpus.vocabularies:  # those of train.init_from may be others
        raise UserError(
            f"train.distil needs a teacher with the same pieces and labels, and data.teacher={run.data.teacher} has others than this run; "
            "give another teacher, or leave train.init_from or train.distil out"
        )
    reader = _Reader(run, teacher)
    key = _key(teacher, corpus)
    if run.data.streamed:
        log.info("teacher: %s (%s, update %d) reads each batch", run.data.teacher, teacher.source, teacher.step)
        return Lessons(key, partial(_ReadBatches, reader=reader))
    file = (Path(run.data.store) if run.data.store else folder.path) / f"teacher-{key}.probabilities"
    source, target = corpus.train.source, corpus.train.target
    counts = np.ones(len(target), np.int64) if reader.of_rows else target.lengths
    kind = record(reader.k, len(corpus.target_vocabulary))
    if not file.exists():
        _write(reader, run, corpus, counts, kind, file)
    probabilities = Probabilities(file, kind, counts, shortest_first(source.lengths, target.lengths))
    log.info("teacher: %s (%s, update %d): %s", run.data.teacher, teacher.source, teacher.step, file)
    return Lessons(key, partial(TaughtBatches, probabilities=probabilities, of_rows=reader.of_rows))


def _key(teacher: TrainedModel, corpus: Corpus) -> str:
    found = hashlib.blake2b(digest(fetch(teacher.variables)).encode(), digest_size=8)
    for each in (teacher.config, TOP_K, corpus.fingerprints()["train"]):
        found.update(repr(each).encode())
    return found.hexdigest()


class _Reader:
    """A teacher that reads batches, their rows on all devices of this process."""

    def __init__(self, run: RunConfig, teacher: TrainedModel) -> None:
        task, network = run.task, build(teacher.config)
        self._devices = Devices.arranged(devices=jax.local_devices())
        # Every device has the whole teacher. So the program sends nothing between devices, and may run beside the student's update.
        self._variables = jax.device_put(fetch(teacher.prepared), NamedSharding(self._devices.mesh, P()))

        def largest(variables: Any, batch: dict[str, Array]) -> tuple[Array, Array]:
            logits = task.logits(network, variables, batch, {}).astype(jnp.float32)
            log_p, ids = jax.lax.top_k(jax.nn.log_softmax(logits), min(TOP_K, logits.shape[-1]))
            return ids, log_p.astype(jnp.float16)

        self._largest = jax.jit(largest)
        batch = {name: jax.ShapeDtypeStruct((1, n), jnp.int32) for name, n in task.arrays(run.data, 2).items()}
        ids, _ = jax.eval_shape(largest, self._variables, batch)
        self.k, self.of_rows = ids.shape[-1], ids.ndim == 2  # whether a row has one target

    def __call__(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The ids of the k most probable classes of each target [rows, *length, k], and their log-probabilities.

        Raises: UserError if these are not finite.
        """
        names = batch.keys() - {"index"}
        placed = {name: self._devices.rows(batch[name], PAD if name == "target" else None) for name in names}
        ids, log_p = (np.asarray(each)[: len(batch["source"])] for each in self._largest(self._variables, placed))
        if np.isnan(log_p).any():
            raise UserError("the logits of data.teacher are not finite: it cannot teach; give another model")
        return ids, log_p


def _write(reader: _Reader, run: RunConfig, corpus: Corpus, counts: np.ndarray, kind: np.dtype, file: Path) -> None:
    """Writes the records of all pairs to `file`, in the order of `shortest_first`. It gets its name when it is complete."""
    settings = run.evaluation
    train, buckets = corpus.train, getattr(settings, "buckets", 1)
    with (
        continued(file, "the teacher's probabilities") as out,
        tqdm(total=len(counts), desc="teacher", unit="text", disable=None) as bar,
    ):
        if out is None:  # another process has written it
            return
        size, done, read = out.seek(0, os.SEEK_END), 0, 0
        for batch in evaluation_batches(train.source, train.target, settings.max_tokens, buckets):
            pairs = batch["index"][batch["index"] >= 0]
            done += int(counts[pairs].sum()) * kind.itemsize
            before, read = read, read + len(pairs)
            bar.update(len(pairs))
            if done <= size:  # an earlier process has written them
                continue
            ids, log_p = (each[: len(pairs)].reshape(len(pairs), -1, reader.k) for each in reader(batch))
            real = np.arange(ids.shape[1]) < counts[pairs][:, None]
            records = appended(ids[real], log_p[real], kind)
            out.truncate(done - len(records))  # where that process was killed
            out.write(records)
            out.flush()
            os.fsync(out.fileno())
            if read // _TEXTS > before // _TEXTS:
                log.info("teacher: %s of %s texts are read", f"{read:,}", f"{len(counts):,}")


class _ReadBatches(WithProbabilities):
    """Batches that the teacher reads when they are made, which is in the threads that read ahead."""

    def __init__(self, batches: Updates, reader: _Reader) -> None:
        super().__init__(batches)
        self._reader = reader

    def __getitem__(self, number: int) -> Batch:
        batch = self._batches[number]
        parts = [
            self._reader({name: array[part] for name, array in batch.items()}) for part in range(len(batch["source"]))
        ]
        ids, log_p = map(np.stack, zip(*parts, strict=True))
        return with_probabilities(batch, ids, log_p)
