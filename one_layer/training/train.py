"""Training: from a config to checkpoints, metrics and scores. The same command, run again, continues an interrupted run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import jax
from tqdm import tqdm

from one_layer.data.batches import Batch, training_iterator
from one_layer.data.corpus import Corpus
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.models import ModelConfig, initialize
from one_layer.models.flops import batch_flops
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig
from one_layer.tasks.protocol import Validator
from one_layer.training import continuing, curves, metrics, processes, results
from one_layer.training.backskipping import computed, with_policy
from one_layer.training.beginning import opened
from one_layer.training.interruption import Interrupted, Interruption
from one_layer.training.meter import Meter
from one_layer.training.optimizer import learning_rate, optimizer
from one_layer.training.plan import total_updates
from one_layer.training.progress import Progress
from one_layer.training.progress_line import ProgressLine
from one_layer.training.skipping import MEND, diverged, report
from one_layer.training.stall import StallWatch
from one_layer.training.step import train_step

log = logging.getLogger(__name__)


def train(run: RunConfig, workdir: str | Path, overrides: list[str]) -> dict[str, Any]:
    """Trains `run` in `workdir`, or continues it there, and scores the best checkpoint on the test sets.

    Returns: the content of `result.json`. Raises: UserError for bad input, and if the loss is no longer finite; Interrupted if a signal
    asks to stop, after a checkpoint was saved.
    """
    with opened(run, workdir) as ready:
        trainer = Trainer(*ready)
        with closing(trainer.checkpoints), Interruption() as interruption:
            trainer.restore()
            trainer.run_to_the_end(interruption)
            trainer.stop_if_asked(interruption)
        return trainer.write_results(overrides)


class Trainer:
    """One run: its arrays, its batches and its loop."""

    def __init__(
        self, run: RunConfig, model: ModelConfig, corpus: Corpus, folder: RunFolder, devices: Devices | None = None
    ) -> None:
        devices = devices or Devices.holding(())
        self.run, self.model, self.corpus, self.folder, self.devices = run, model, corpus, folder, devices
        self.progress = Progress(**folder.identity(corpus), text=corpus.fingerprints())
        self.batches = run.task.batches(corpus, run.data, run.optim.accumulate, run.seed).shared(*devices.shares())
        self.epoch_updates = self.batches.batches_per_epoch
        self.updates = total_updates(run.train, self.epoch_updates)
        self.evaluate_every = run.train.evaluate_every or self.epoch_updates
        self.schedule = learning_rate(run.optim, self.updates)
        self.optimizer = with_policy(optimizer(run.optim, self.updates), model, run.seed)
        variables = self._begun()
        self.params = variables.pop("params")
        self.fixed = variables
        parts, smoothing, warmup = TrainedParts.of(model), run.optim.label_smoothing, run.optim.warmup or 0
        self.moments = devices.initial_moments(lambda params: self.optimizer.init(parts.pick(params)), self.params)
        self.step = train_step(run.task, model, self.optimizer, smoothing, run.seed, warmup, devices)
        self.checkpoints = folder.checkpoints(run.train, self.evaluate_every)
        self.sums: dict[str, Any] = {}
        self._pause = processes.Pause()

    def _begun(self) -> Any:
        """The variables before the first update."""
        drawn = initialize(self.model, self.run.seed, self.devices)
        return self.folder.with_start(drawn, bool(self.run.train.init_from))

    def restore(self) -> None:
        """Continues from the newest checkpoint that can be read, if there is one, as `continuing.newest` does."""
        found = continuing.newest(self.checkpoints, self.params, self.moments, self._check_progress)
        if found is not None:
            self.progress, self.params, self.moments = found
            if not self.progress.evaluated:  # an earlier version did not store them, and kept these in a row
                self.progress.evaluated = sorted(self.checkpoints.ranked())[-self.run.train.keep_last :]

    def _check_progress(self, progress: Progress) -> None:
        continuing.check(vars(progress), self.folder, self.corpus, self.run.data)
        progress.text = self.progress.text

    def run_to_the_end(self, interruption: Interruption) -> None:
        """Does everything that `course` says. Raises: Interrupted and Diverged as `course` does."""
        for batch, number in self.course(interruption):
            self.params, self.moments, self.sums = self.step(self.params, self.moments, self.fixed, batch, number)

    def course(self, interruption: Interruption) -> Iterator[tuple[dict[str, Any], int]]:
        """Trains until the last update or until `patience` evaluations bring no better score. Evaluates and saves regularly.

        Yields: each update's batch and the number of updates before it. Whoever asks for the next one has done this one: `params` and
        `moments` are those after it, and `sums` is what it reports. So one program may do the updates of many runs.

        Raises: Interrupted, between two updates or two batches of the validation set, if a signal asks to stop; a checkpoint was saved
        before. Diverged, after too many updates in a row that were not finite.
        """
        if self._over():
            return
        self.validator = self._new_validator()
        mask = self.model.supermask
        self._pack = jax.jit(partial(metrics.packed_masks, mask=mask, selecting=self.devices.selecting(mask)))
        self.masks = self._masks_of_last_evaluation()
        self.line, self._saved = ProgressLine(self.updates, self.evaluate_every), time.perf_counter()
        log.info(
            "curves: %s, or pip install tensorboard && tensorboard --logdir=%s", self.folder.curves_file, self.folder
        )
        with closing(metrics.log_of(self.folder, self.progress.step)) as self.log:
            while not self._over():
                with (
                    closing(training_iterator(self.batches, self.progress.step)) as batches,
                    StallWatch(self.run.train.stall_minutes, self.progress.step) as watch,
                ):
                    yield from self._interval(batches, interruption, watch)
                if self._unevaluated():
                    self._evaluate_and_save(interruption)
                self.stop_if_asked(interruption)

    def write_results(self, overrides: list[str], members: int = 1) -> dict[str, Any]:
        """Scores the best checkpoint on the test sets and writes `result.json`, which has the number of `members`. Returns: its content."""
        progress, updates = self.progress, self.epoch_updates
        return results.write(self.run, self.corpus, self.folder, progress, updates, overrides, members)

    def _new_validator(self) -> Validator:
        return self.run.task.validator(self.model, self.run.data, self.run.evaluation, self.corpus)

    def _masks_of_last_evaluation(self) -> metrics.Masks:
        """The masks that `mask/flips` compares with: those at the last evaluation, or before the first update.

        None if the checkpoint of that evaluation cannot be read: a metric is no reason to end a run.
        """
        step, evaluated = self.progress.step, self.progress.evaluated
        if not self.model.masked or step in (0, *evaluated[-1:]):
            return self._packed(self.params)
        if not evaluated:
            return self._packed(self._begun()["params"])
        try:
            return self._packed(self.checkpoints.restore(evaluated[-1], params=self.params)["params"])
        except UserError as error:
            log.warning("the next evaluation has no mask/flips: %s", error)
            return {}

    def _over(self) -> bool:
        return self._at_an_end() and not self._unevaluated()

    def _at_an_end(self) -> bool:
        patience, progress = self.run.train.patience, self.progress
        return progress.step >= self.updates or bool(patience and progress.since_best >= patience)

    def _unevaluated(self) -> bool:
        """Whether the evaluation of the present update is still to come: a signal stopped it, or the run now ends earlier."""
        step = self.progress.step
        due = step % self.evaluate_every == 0 or self._at_an_end()
        return due and step > 0 and self.progress.evaluated[-1:] != [step]

    def _interval(
        self, batches: Iterator[Batch], interruption: Interruption, watch: StallWatch
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Does the updates up to the next evaluation, or until a checkpoint is due, which is then saved.

        Metrics are fetched one step late, so that the device never waits. Only an update that may be the last of too many skipped ones is
        waited for: none may follow it.
        """
        progress, most = self.progress, self.run.train.max_nonfinite
        next_evaluation = progress.step + self.evaluate_every - progress.step % self.evaluate_every
        end = progress.step if self._unevaluated() else min(next_evaluation, self.updates)
        meter = Meter(self.log, self.schedule, self.run.train.log_every, progress.seconds, progress.meter, self.line)
        pending: list[tuple[int, dict[str, Any]]] = []
        reached = progress.step
        self.flops_after = {reached: progress.flops}
        for step in tqdm(range(progress.step, end), desc=self._title(), unit="update", disable=None, leave=False):
            batch = next(batches)
            placed = self.devices.batch(batch)
            yield placed, step
            counted = computed(self.model, self.run.seed, self.run.optim.warmup or 0, step)
            progress.flops += batch_flops(counted, placed)
            self.flops_after[step + 1] = progress.flops
            pending.append((step + 1, self.sums))
            while len(pending) > (1 if meter.in_a_row + 1 < most else 0):
                finished, its_sums = pending.pop(0)
                self._read(meter, finished, its_sums)
                watch.finished(finished)
            reached = step + 1
            if self._pause.now(bool(interruption.signal) or self._due()):
                break
        for step, sums in pending:
            self._read(meter, step, sums)
        if reached == end:
            meter.write(end)
        progress.tokens += meter.tokens
        progress.step, progress.seconds, progress.meter = reached, meter.seconds(), meter.state
        if progress.step < end:
            self.stop_if_asked(interruption)
            self._save()

    def _due(self) -> bool:
        """Whether the last checkpoint is older than `train.checkpoint_minutes`."""
        minutes = self.run.train.checkpoint_minutes
        return bool(minutes) and time.perf_counter() - self._saved >= 60 * minutes

    def _save(self, score: float | None = None) -> None:
        self.checkpoints.save(self.progress.step, self.params, self.moments, dict(vars(self.progress)), score)
        self._saved = time.perf_counter()

    def _read(self, meter: Meter, step: int, sums: dict[str, Any]) -> None:
        """Reads what an update reports. Raises: Diverged after too many in a row that were not finite; their start is saved."""
        skipped = meter.skipped
        read = meter.add(step, sums)
        if meter.skipped == skipped:
            return
        report(self.log, step, meter.seconds(), self.epoch_updates, read, self.params, meter.in_a_row)
        if meter.in_a_row < self.run.train.max_nonfinite:
            return
        progress = self.progress
        # Otherwise the row began before this interval, at whose start a checkpoint was saved.
        if meter.before_row is not None:
            progress.tokens += meter.tokens
            progress.step, progress.seconds, progress.meter = step - meter.in_a_row, meter.seconds(), meter.before_row
            progress.flops = self.flops_after.get(progress.step, progress.flops)
        self._save_unscored()
        raise diverged(step, meter.in_a_row, progress.step)

    def _evaluate_and_save(self, interruption: Interruption) -> None:
        progress = self.progress
        # Several processes cannot stop together between two batches; they stop after the evaluation.
        between = partial(self.stop_if_asked, interruption) if processes.alone() else lambda: None
        values = self.validator(self.params, self.fixed, between)
        if not math.isfinite(nll := values["valid/nll"]):
            raise UserError(
                f"the validation loss is {nll} at update {progress.step}: {MEND}. The checkpoints before that update are good"
            )
        masks = self._packed(self.params)
        if self.masks:
            values["mask/flips"] = metrics.flipped_share(self.masks, masks)
        self.masks = masks
        values["train/flops"] = progress.flops
        select = self.run.train.select
        score = -values["valid/nll"] if select == "nll" else values[f"valid/{select}"]
        better = progress.best is None or score > progress.best
        if better:
            progress.best, progress.since_best = score, 0
        else:
            progress.since_best += 1
        progress.evaluated = [*progress.evaluated, progress.step]
        self.log.write(progress.step, progress.seconds, values)
        if self.folder.writes:
            written = metrics.read_metrics(self.folder.metrics_file)
            write_atomically(self.folder.curves_file, curves.draw(written, select))
        self.line.evaluated()
        self._save(score)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        log.info("%s  update %d  %s%s", self._title(), progress.step, shown, "  *" if better else "")

    def stop_if_asked(self, interruption: Interruption) -> None:
        """Raises: Interrupted if a signal has asked to stop; a checkpoint of the present update is saved before."""
        if number := processes.greatest(interruption.signal or 0):
            self._save_unscored()
            raise Interrupted(number, self.progress.step)

    def _save_unscored(self) -> None:
        """Saves the present update, without a score unless it has one already, and waits until everything is written."""
        if self.checkpoints.last() != self.progress.step:
            self._save()
        self.checkpoints.wait()

    def _packed(self, params: Any) -> metrics.Masks:
        return self._pack(params) if self.model.masked else {}

    def _title(self) -> str:
        return f"epoch {self.progress.step / self.epoch_updates:.1f}"
