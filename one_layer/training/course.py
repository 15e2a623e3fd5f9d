"""The course of a run: its updates, with metrics, evaluations and checkpoints between them."""

import logging
import math
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import optax
from tqdm import tqdm

from one_layer.data.batches import training_iterator
from one_layer.models.flops import batch_flops
from one_layer.runs.convergence import selected_by
from one_layer.runs.progress import duration, time_left
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically
from one_layer.training import curves, processes
from one_layer.training.backskipping import computed
from one_layer.training.flips import Flips
from one_layer.training.interruption import Interruption
from one_layer.training.meter import Meter
from one_layer.training.metrics import MetricsLog, cut, read_metrics
from one_layer.training.trainer import Trainer

log = logging.getLogger(__name__)

MOST_IN_A_ROW = 10  # updates that are skipped; after so many, the run ends
MEND = "training has diverged; lower optim.lr, lengthen optim.warmup or set optim.clip, in a new --workdir"
Request = tuple[dict[str, Any], int]  # a batch, placed on the devices, and the number of updates before it


def course(trainer: Trainer, interruption: Interruption) -> Iterator[Request]:
    """Leads a run until its last update, or until `train.patience` evaluations bring no better score.

    Yields: each update that is to be done. Whoever asks for the next one has done this one: the trainer's `params` and `moments` are those
    after it, and `sums` is what it reports. So one program may do the updates of many runs.

    Raises: Interrupted, between two updates or two batches of the validation set, if a signal asks to stop; a checkpoint was saved
    before. UserError, after too many updates in a row that were not finite.
    """
    folder, progress = trainer.folder, trainer.progress
    if trainer.over:  # perhaps because of a lower train.patience: a process that was killed had gone on
        cut(folder, progress.step, progress.step in progress.evaluated)
        return
    log.info("curves: %s; TensorBoard reads %s", folder.curves_file, folder)
    with closing(MetricsLog(folder, progress.step, progress.step in progress.evaluated)) as lines:
        under_way = _Course(trainer, interruption, lines)
        if folder.writes and progress.step and folder.result_file.is_file():  # it had ended, and becomes longer
            for file in folder.of_end(trainer.corpus.tests):
                file.unlink(missing_ok=True)
        while not trainer.over:
            yield from under_way.interval()
            if trainer.unevaluated:
                with trainer.clock.stopped():
                    under_way.evaluate_and_save()
            trainer.stop_if_asked(interruption)
    if progress.step < trainer.updates:
        train = trainer.run.train
        select = selected_by(read_metrics(folder.metrics_file), train.select)
        log.info(
            "ends at update %d of %d: the last %d evaluations brought no better %s than that of the best checkpoint "
            "(train.patience=%d; with train.patience=0 the run goes on)",
            *(progress.step, trainer.updates, progress.since_best, f"valid/{select}", train.patience),
        )


class _Course:
    def __init__(self, trainer: Trainer, interruption: Interruption, lines: MetricsLog) -> None:
        self._trainer, self._interruption, self._log = trainer, interruption, lines
        self._validator = trainer.new_validator()
        self._flips = Flips(trainer.model, trainer.devices)
        self._keep_masks_of_last_evaluation()
        self._pause = processes.Pause()
        trainer.saved = time.perf_counter()

    def _keep_masks_of_last_evaluation(self) -> None:
        """Keeps the masks that `mask/flips` compares with: those at the last evaluation, or before the first update.

        None if the checkpoint of that evaluation cannot be read: a metric is no reason to end a run.
        """
        trainer = self._trainer
        step, evaluated = trainer.progress.step, trainer.progress.evaluated
        if not trainer.model.masked or step in (0, *evaluated[-1:]):
            self._flips.keep(trainer.params)
        elif not evaluated:
            self._flips.keep(trainer.begun()["params"])
        else:
            try:
                self._flips.keep(trainer.checkpoints.restore(evaluated[-1], params=trainer.params)["params"])
            except UserError as error:
                log.warning("the next evaluation has no mask/flips: %s", error)

    def interval(self) -> Iterator[Request]:
        """Does the updates up to the next evaluation, or until a checkpoint is due, which is then saved.

        Metrics are fetched one step late, so that the device never waits.
        """
        trainer = self._trainer
        run, progress = trainer.run, trainer.progress
        next_evaluation = progress.step + trainer.evaluate_every - progress.step % trainer.evaluate_every
        end = progress.step if trainer.unevaluated else min(next_evaluation, trainer.updates)
        if end > progress.step:
            progress.trains(trainer.members, *trainer.trains_on)
        of_line = run.train.log_every, trainer.updates, progress.seconds, progress.meter
        meter = Meter(self._log, trainer.schedule, *of_line, trainer.clock)
        pending: list[tuple[int, dict[str, Any]]] = []
        reached = progress.step
        with closing(training_iterator(trainer.batches, progress.step)) as batches:
            for step in tqdm(range(progress.step, end), desc=self._title(), unit="update", disable=None, leave=False):
                placed = trainer.devices.batch(next(batches))
                yield placed, step
                counted = computed(trainer.model, run.seed, run.optim.warmup or 0, step)
                progress.flops += batch_flops(counted, placed, trainer.batches.rows_of(step))
                pending.append((step + 1, trainer.sums))
                if len(pending) > 1:
                    self._read(meter, *pending.pop(0))
                reached = step + 1
                if self._pause.now(bool(self._interruption.signal) or self._due()):
                    break
        for step, sums in pending:
            self._read(meter, step, sums)
        if reached == end:
            meter.write(end)
        progress.tokens += meter.tokens
        progress.step, progress.seconds, progress.meter = reached, meter.seconds(), meter.state
        if progress.step < end:
            with trainer.clock.stopped():
                trainer.stop_if_asked(self._interruption)
                trainer.save()

    def _due(self) -> bool:
        """Whether the last checkpoint is older than `train.checkpoint_minutes`."""
        minutes = self._trainer.run.train.checkpoint_minutes
        return bool(minutes) and time.perf_counter() - self._trainer.saved >= 60 * minutes

    def _read(self, meter: Meter, step: int, sums: dict[str, Any]) -> None:
        """Reads what an update reports. Raises: UserError after too many in a row that were not finite."""
        skipped, read = meter.skipped, meter.add(step, sums)
        if meter.skipped > skipped:
            self._report(meter, step, read["loss"], read["norm"])
        if meter.in_a_row >= MOST_IN_A_ROW:
            first = step - meter.in_a_row + 1
            raise UserError(
                f"the loss or the gradient was not finite in {meter.in_a_row} updates in a row ({first} to {step}), and none of these was "
                f"applied: {MEND}. The same command repeats them, from the newest checkpoint"
            )

    def _report(self, meter: Meter, step: int, loss: float, norm: float) -> None:
        """Logs an update that is not applied, and writes it into the metrics. The parameters are those before it."""
        epoch, batch = divmod(step - 1, self._trainer.epoch_updates)
        parameters = float(optax.tree.norm(self._trainer.params))
        log.warning(
            "update %d is not applied: its loss is %g and the norm of its gradient is %g (batch %d of epoch %d; norm of the parameters "
            "%.4g; %d such updates in a row)",
            *(step, loss, norm, batch + 1, epoch + 1, parameters, meter.in_a_row),
        )
        values = {"loss": loss, "gradient_norm": norm, "parameter_norm": parameters, "in_a_row": meter.in_a_row}
        self._log.write(step, meter.seconds(), {f"skipped/{name}": value for name, value in values.items()})

    def evaluate_and_save(self) -> None:
        """Measures the validation set, writes the metrics and the curves, and saves a checkpoint with its score."""
        trainer, progress = self._trainer, self._trainer.progress
        # Several processes cannot stop together between two batches; they stop after the evaluation.
        between = partial(trainer.stop_if_asked, self._interruption) if processes.alone() else lambda: None
        values = self._validator(trainer.params, trainer.fixed, between)
        if not math.isfinite(nll := values["valid/nll"]):
            raise UserError(
                f"the validation loss is {nll} at update {progress.step}: {MEND}. The checkpoints before that update are good"
            )
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        values |= self._flips.since(trainer.params)
        values["train/flops"] = progress.flops
        wanted = trainer.run.train.select
        select = selected_by([values], wanted)
        if select != wanted and not progress.evaluated:
            log.warning("the evaluations have no %s, so nll selects the best checkpoint", wanted)
        score = -values["valid/nll"] if select == "nll" else values[f"valid/{select}"]
        better = progress.best is None or score > progress.best
        if better:
            progress.best, progress.since_best = score, 0
        else:
            progress.since_best += 1
        progress.evaluated = [*progress.evaluated, progress.step]
        self._log.write(progress.step, progress.seconds, values)
        folder = trainer.folder
        if folder.writes:
            write_atomically(folder.curves_file, curves.draw(read_metrics(folder.metrics_file), select))
        trainer.save(score)
        left = duration(time_left(progress.step, trainer.updates, progress.seconds))
        log.info("%s  update %d  %s  %s left%s", self._title(), progress.step, shown, left, "  *" if better else "")

    def _title(self) -> str:
        return f"epoch {self._trainer.progress.step / self._trainer.epoch_updates:.1f}"
