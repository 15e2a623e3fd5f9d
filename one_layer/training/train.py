"""Training: from a config to checkpoints, metrics and a score. Run again, the same command goes on where it stopped."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jax
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data import corpus as corpora
from one_layer.data.batches import Batch, TrainingBatches, training_iterator
from one_layer.errors import UserError
from one_layer.importers.embeddings import embedding_rows, table_sides
from one_layer.models import ModelConfig, initialize, pretrained_tables
from one_layer.runs import evaluate
from one_layer.runs.checkpoints import Checkpoints
from one_layer.runs.frozen import check_frozen, fingerprint, with_frozen, write_frozen
from one_layer.runs.restore import check_vocabularies
from one_layer.runs.settings import RunConfig, check_workdir, write_config
from one_layer.training import metrics, results
from one_layer.training.optimizer import learning_rate, optimizer
from one_layer.training.step import train_step

log = logging.getLogger(__name__)

_NOT_A_NUMBER = (
    "the {what} is {value} at update {step}: training has diverged; lower optim.lr, lengthen optim.warmup or set optim.clip. "
    "The checkpoints up to there are good"
)


def train(run: RunConfig, workdir: Path, overrides: list[str]) -> dict[str, Any]:
    """Trains `run` in `workdir`, or goes on with it, and scores the best checkpoint on the test sets.

    Returns: what `result.json` holds. Raises: UserError for bad input, and where the loss stops being a number.
    """
    resumed = check_workdir(workdir, run)
    corpus = _corpus(run, workdir, resumed)
    model = run.model_config(*map(len, corpus.vocabularies))
    if not resumed:
        tables = _tables(run, model, corpus)  # a file that is missing or damaged is noticed before anything is written
        corpora.save_text_assets(corpus, workdir)
        write_frozen(workdir, {"frozen": tables})
    write_config(workdir, run)
    trainer = Trainer(run, model, corpus, workdir)
    with closing(trainer.checkpoints):
        trainer.restore()
        trainer.run_to_the_end()
    return results.write(run, corpus, workdir, trainer.progress, trainer.epoch_updates, overrides)


def _corpus(run: RunConfig, workdir: Path, resumed: bool) -> corpora.Corpus:
    """The text, with the vocabularies that the run had when it began."""
    if resumed:
        saved = corpora.load_text_assets(workdir)
        corpus = corpora.load(run.data, saved.vocabularies, saved.codes)
    else:
        corpus = corpora.load(run.data)
    for line in corpus.report:
        log.info(line)
    return corpus


def _tables(run: RunConfig, model: ModelConfig, corpus: corpora.Corpus) -> dict[str, Any]:
    """The tables of `model.embedding_path`, one for each side, or one for both where that is shared; none without a path."""
    return pretrained_tables(model, run.seed, embedding_rows(model, table_sides(model, corpus)))


@dataclass
class Progress:
    """How far a run has come: what a checkpoint keeps beside the arrays."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best: float | None = None
    since_best: int = 0
    vocabularies: list[str] = field(default_factory=list)  # fingerprints, source and target
    frozen: str | None = None  # fingerprint of frozen.npz
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class Trainer:
    """One run: its arrays, its batches and its loop."""

    def __init__(self, run: RunConfig, model: ModelConfig, corpus: corpora.Corpus, workdir: Path) -> None:
        self.run, self.model, self.corpus, self.workdir = run, model, corpus, workdir
        prints = [vocabulary.fingerprint for vocabulary in corpus.vocabularies]
        self.progress = Progress(vocabularies=prints, frozen=fingerprint(workdir))
        data, accumulate = run.data, run.optim.accumulate
        self.batches = TrainingBatches(
            corpus.train.source,
            corpus.train.target,
            max_tokens=data.max_tokens,
            accumulate=accumulate,
            buckets=data.buckets,
            seed=run.seed,
        )
        log.info(self.batches.describe(of_labels=model.classifies))
        self.epoch_updates = self.batches.batches_per_epoch
        self.updates = min(run.train.updates or sys.maxsize, (run.train.epochs or sys.maxsize) * self.epoch_updates)
        self.evaluate_every = run.train.evaluate_every or self.epoch_updates
        self.schedule = learning_rate(run.optim, self.updates)
        variables = with_frozen(workdir, initialize(model, run.seed))
        self.params = variables.pop("params")
        self.fixed = variables
        self.optimizer = optimizer(run.optim, self.updates)
        self.moments = self.optimizer.init(self.params)
        self.step = train_step(model, self.optimizer, run.optim.label_smoothing, run.seed)
        kept = run.train
        self.checkpoints = Checkpoints(workdir, kept.keep_last, kept.keep_every * self.evaluate_every, kept.keep_best)

    def restore(self) -> None:
        """Takes up the newest checkpoint, where there is one."""
        step = self.checkpoints.last()
        if step is None:
            return
        self.progress = Progress(**self.checkpoints.progress(step))
        check_vocabularies(vars(self.progress), self.corpus, self.workdir)
        check_frozen(vars(self.progress), self.workdir)
        restored = self.checkpoints.restore(step, params=self.params, optimizer=self.moments)
        self.params, self.moments = restored["params"], restored["optimizer"]
        log.info("going on from update %d", step)

    def run_to_the_end(self) -> None:
        """Updates until the last one or until patience is lost, evaluating and saving on the way."""
        if self._over():
            return
        self.validator = evaluate.validator(self.run, self.model, self.corpus)
        self._pack = jax.jit(partial(metrics.packed_masks, mask=self.model.supermask))
        self.masks = self._packed()
        with closing(metrics.MetricsLog(self.workdir, self.progress.step)) as self.log:
            while not self._over():
                with closing(training_iterator(self.batches, self.progress.step)) as batches:
                    self._interval(batches)
                self._evaluate_and_save()

    def _over(self) -> bool:
        patience, progress = self.run.train.patience, self.progress
        return progress.step >= self.updates or bool(patience and progress.since_best >= patience)

    def _interval(self, batches: Iterator[Batch]) -> None:
        """The updates up to the next evaluation. Metrics are fetched one step late, so that the device never waits."""
        progress = self.progress
        end = min(progress.step + self.evaluate_every - progress.step % self.evaluate_every, self.updates)
        meter = Meter(self.log, self.schedule, self.run.train.log_every, progress.seconds)
        pending: tuple[int, dict[str, Array]] | None = None
        for step in tqdm(range(progress.step, end), desc=self._title(), unit="update", disable=None, leave=False):
            self.params, self.moments, sums = self.step(self.params, self.moments, self.fixed, next(batches), step)
            if pending:
                meter.add(*pending)
            pending = step + 1, sums
        if pending:
            meter.add(*pending)
        progress.step, progress.seconds = end, meter.seconds()
        progress.tokens += meter.tokens

    def _evaluate_and_save(self) -> None:
        progress = self.progress
        values = self.validator(self.params, self.fixed)
        if not math.isfinite(nll := values["valid/nll"]):
            raise UserError(_NOT_A_NUMBER.format(what="validation loss", value=nll, step=progress.step))
        if self.masks:
            masks = self._packed()
            values["mask/flips"] = float(metrics.flipped_share(self.masks, masks))
            self.masks = masks
        select = self.run.train.select
        score = -values["valid/nll"] if select == "nll" else values[f"valid/{select}"]
        better = progress.best is None or score > progress.best
        if better:
            progress.best, progress.since_best = score, 0
        else:
            progress.since_best += 1
        self.log.write(progress.step, progress.seconds, values)
        self.checkpoints.save(progress.step, self.params, self.moments, dict(vars(progress)), score)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        log.info("%s  update %d  %s%s", self._title(), progress.step, shown, "  *" if better else "")

    def _packed(self) -> metrics.Masks:
        return self._pack(self.params) if self.model.masked else {}

    def _title(self) -> str:
        return f"epoch {self.progress.step / self.epoch_updates:.1f}"


class Meter:
    """Sums what the updates report and writes a line of means every `log_every` of them; stops the run at a loss that is no number."""

    def __init__(
        self, log: metrics.MetricsLog, schedule: Callable[[int], Array], log_every: int, seconds: float
    ) -> None:
        self._log, self._schedule, self._log_every = log, schedule, log_every
        self._before, self._start = seconds, time.perf_counter()
        self.tokens = 0
        self._clear()

    def seconds(self) -> float:
        """Of training so far, earlier intervals and runs included, evaluations not."""
        return self._before + time.perf_counter() - self._start

    def add(self, step: int, sums: dict[str, Array]) -> None:
        """Takes the sums of one update; reading them waits for it."""
        read = {name: float(value) for name, value in jax.device_get(sums).items()}
        for name, what in {"loss": "loss", "norm": "gradient's norm"}.items():
            if not math.isfinite(read[name]):
                raise UserError(_NOT_A_NUMBER.format(what=what, value=read[name], step=step))
        for name, value in read.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._updates += 1
        self.tokens += int(read["tokens"])
        if step % self._log_every == 0:
            self._write(step)

    def _write(self, step: int) -> None:
        sums, now = self._sums, self.seconds()
        means = {
            "train/loss": sums["loss"] / sums["targets"],
            "train/nll": sums["nll"] / sums["targets"],
            "train/gradient_norm": sums["norm"] / self._updates,
            "train/learning_rate": float(self._schedule(step - 1)),
            "train/tokens_per_second": sums["tokens"] / (now - self._since),
        }
        self._log.write(step, now, means)
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, float] = {}
        self._updates = 0
        self._since = self.seconds()
