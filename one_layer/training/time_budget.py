"""How many updates `train.minutes` has time for, from the speed of a hundred updates that are thrown away."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp

from one_layer.data.batches import training_iterator
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import MOST_UPDATES, RunConfig, with_values
from one_layer.system.errors import UserError, counted
from one_layer.system.files import UNFINISHED
from one_layer.training import processes
from one_layer.training.plan import MOST_EVALUATIONS, planned
from one_layer.training.trainer import Ready, Trainer

log = logging.getLogger(__name__)

MEASURED = 100  # updates
_MOST_OF_IT = 0.1  # the share of the time that they may take
_FEWEST = 20  # updates with which a run is worth its name


@dataclass(frozen=True)
class Speed:
    """Seconds: of an update, of an evaluation, and of what the run still has to compile."""

    update: float
    evaluation: float
    compiling: float


def updates_for(run: RunConfig, speed: Speed, scored: float, left: float, epoch_updates: int) -> int:
    """The updates that end, with their evaluations and the scores of the test sets, in `left` seconds: in several processes, the fewest.

    `scored`: how many times as long as an evaluation the test sets take. Raises: UserError if the time is too short to train.
    """
    every = run.train.evaluate_every
    evaluations = MOST_EVALUATIONS * speed.evaluation if every is None else 0.0
    each = speed.update + (0.0 if every is None else speed.evaluation / (every or epoch_updates))
    others = speed.compiling + evaluations + scored * speed.evaluation
    updates = -processes.greatest(-int(min((left - others) / each, MOST_UPDATES)))
    if updates < _FEWEST:
        raise UserError(
            f"train.minutes={run.train.minutes:g} is too short: of {max(left, 0):.0f} seconds that are left of it, compiling, evaluations "
            f"and the scores of the test sets take about {others:.0f}, and an update {speed.update:.2g}; give more minutes"
            f"{', a smaller model, or evaluation.valid_beam=0' if getattr(run.evaluation, 'valid_beam', 0) else ' or a smaller model'}"
        )
    return updates


def with_updates(ready: Ready, began: float) -> tuple[RunConfig, list[str]]:
    """The run with the updates for which `train.minutes` has time, and lines for people. `began`: when the run did, by perf_counter."""
    run, corpus = ready.run, ready.corpus
    minutes = run.train.minutes
    deadline = began + 60 * minutes
    log.info("measuring the speed of updates, of which train.minutes=%g may have some", minutes)
    with _trial(ready) as trainer:
        speed = _speed(trainer, deadline)
        epoch_updates = trainer.epoch_updates
    tests = sum(len(split.source) for split in corpus.tests.values()) / max(len(corpus.valid.source), 1)
    scored = tests * getattr(run.evaluation, "beam", 1)
    left = deadline - time.perf_counter()
    updates = updates_for(run, speed, scored, left, epoch_updates)
    lines = [
        f"chosen: train.updates={updates:,} (train.minutes={minutes:g}: {speed.update:.2g} s an update and {speed.evaluation:.2g} s an "
        "evaluation, measured in updates that are not part of the run)"
    ]
    if updates < epoch_updates:
        lines.append(f"these are less than one epoch of {epoch_updates:,} updates: a part of the text is never read")
    return with_values(run, {"train.updates": updates}), lines


@contextmanager
def _trial(ready: Ready) -> Iterator[Trainer]:
    """A trainer whose folder is thrown away, and whose programs the run finds. What `train.init_from` names changes no speed."""
    endless = with_values(ready.run, {"train.updates": MOST_UPDATES, "train.epochs": 0, "train.init_from": ""})
    with TemporaryDirectory(dir=ready.folder.path, prefix=".trial.", suffix=UNFINISHED) as folder:
        trainer = Trainer(ready._replace(run=planned(endless, MEASURED)[0], folder=RunFolder(folder)))
        # Tables that no seed gives are not there yet; numbers that are not finite would end each update early.
        if "frozen" in trainer.fixed:
            trainer.fixed["frozen"] = jax.tree.map(jnp.nan_to_num, trainer.fixed["frozen"])
        with closing(trainer.checkpoints):
            trainer.restore()
            yield trainer


def _speed(trainer: Trainer, deadline: float) -> Speed:
    seconds: list[float] = []
    compiling: dict[tuple[int, ...], float] = {}
    stop = time.perf_counter() + _MOST_OF_IT * (deadline - time.perf_counter())
    with closing(training_iterator(trainer.batches, 0)) as batches:
        for number, batch in zip(range(MEASURED), batches, strict=False):
            began = time.perf_counter()
            trainer.update(trainer.devices.batch(batch), number)
            jax.block_until_ready(trainer.sums)
            took = time.perf_counter() - began
            if processes.greatest(int(time.perf_counter() > deadline)):
                raise UserError(
                    f"train.minutes={trainer.run.train.minutes:g} is too short: it was over after {counted(number + 1, 'update')} of the "
                    "measurement, which compiles; give more minutes or a smaller model"
                )
            if (shape := batch["source"].shape) in compiling:
                seconds.append(took)
            else:
                compiling[shape] = took
            if seconds and processes.greatest(int(time.perf_counter() > stop)):
                break
    evaluate = trainer.new_validator()
    times = []
    for _ in range(2):  # the first one compiles
        began = time.perf_counter()
        evaluate(trainer.params, trainer.fixed, lambda: None)
        times.append(time.perf_counter() - began)
    first, evaluation = times
    # Other programs are still to come, and the search of the test sets is one too, which takes about as long.
    each = sum(compiling.values()) / len(compiling)
    others = len(trainer.programs()) - len(compiling)
    return Speed(sum(seconds) / max(len(seconds), 1), evaluation, others * each + max(first - evaluation, each))
