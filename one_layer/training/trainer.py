"""One run in training: its arrays, its batches, its optimiser and its checkpoints."""

import logging
import time
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax

from one_layer.data.corpus import Corpus
from one_layer.models import ModelConfig, initialize
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.runs.commit import commit
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import OptimConfig, RunConfig
from one_layer.tasks.losses import Distil
from one_layer.tasks.protocol import Validator
from one_layer.training import processes
from one_layer.training.backskipping import skips, uses_policy, with_policy
from one_layer.training.compiling import Compiling, Given
from one_layer.training.distilling import Lessons
from one_layer.training.frozen_masks import with_frozen_masks
from one_layer.training.interruption import Interrupted, Interruption
from one_layer.training.meter import Clock
from one_layer.training.optimizer import learning_rate, optimizer, pace
from one_layer.training.plan import keeps_loops, total_updates
from one_layer.training.progress import Progress
from one_layer.training.step import train_step as new_train_step

log = logging.getLogger(__name__)

# A run that goes on in the same process, or whose speed was measured, has its program already.
train_step = lru_cache(maxsize=8)(new_train_step)


@lru_cache(maxsize=8)
def _optimizer(config: OptimConfig, model: ModelConfig, seed: int) -> Any:
    return with_policy(optimizer(config), model, seed)


class Ready(NamedTuple):
    """A run whose folder is locked and has the files of its beginning, with a value for every key."""

    run: RunConfig
    model: ModelConfig
    corpus: Corpus
    folder: RunFolder
    devices: Devices
    lessons: Lessons | None = None  # what a teacher says of the training text


class Trainer:
    """A run between two updates. `one_layer.training.course.course` says what it does next, and evaluates and saves it on the way."""

    def __init__(self, ready: Ready) -> None:
        run, model, corpus, folder, devices, lessons = ready
        self.run, self.model, self.corpus, self.folder, self.devices = run, model, corpus, folder, devices
        self.progress = Progress(**folder.identity(corpus), text=corpus.fingerprints())
        self.batches = run.task.batches(corpus, run.data, run.optim.accumulate, run.seed).shared(*devices.shares())
        self.batches = self.batches if lessons is None else lessons.beside(self.batches)
        self.epoch_updates = self.batches.batches_per_epoch
        self.updates = total_updates(run.train, self.epoch_updates)
        self.evaluate_every = run.train.evaluate_every or self.epoch_updates
        self.pace = pace(run.optim, self.updates)
        self.schedule = partial(learning_rate, run.optim.schedule, self.pace)
        # The same object for runs that differ in their pace alone, so that `train_step` knows it again.
        paceless = replace(run.optim, lr=None, warmup=None, warmup_init_lr=0.0)
        self.optimizer = _optimizer(paceless, model, run.seed)
        variables = self.begun()
        self.params = variables.pop("params")
        self.fixed = variables
        parts, smoothing = TrainedParts.of(model), run.optim.label_smoothing
        self.moments = devices.initial_moments(lambda params: self.optimizer.init(parts.pick(params)), self.params)
        distil, loops = Distil.of(run.train), keeps_loops(run.train, self.updates)
        self.step = train_step(
            run.task, model, self.optimizer, smoothing, run.seed, devices, distil, loops, run.optim.softness
        )
        self.checkpoints = folder.checkpoints(run.train)
        self.sums: dict[str, Any] = {}
        self.saved = time.perf_counter()
        self.clock, self.members = Clock(), 1  # members: how many runs share the device
        self.trains_on = [jax.devices()[0].device_kind, jax.device_count()], commit()

    def begun(self) -> Any:
        """The variables before the first update."""
        drawn = initialize(self.model, self.run.seed, self.devices)
        return self.folder.with_start(drawn, bool(self.run.train.init_from))

    def new_validator(self) -> Validator:
        """What measures the model on the validation set."""
        return self.run.task.validator(self.model, self.run.data, self.run.evaluation, self.corpus)

    def restore(self) -> None:
        """Makes the run ready for its next update: continues from the newest checkpoint, if there is one.

        Raises: UserError, which says what to do, for one that is damaged, or of another folder or text.
        """
        if (step := self.checkpoints.last()) is not None:
            progress = Progress(**self.checkpoints.progress(step))
            # Before arrays, which may have other shapes.
            self.folder.check_beginning(vars(progress), self.corpus, self.run.data)
            restored = self.checkpoints.restore(step, params=self.params, optimizer=self.moments)
            self.checkpoints.remove_superfluous()
            progress.text = self.progress.text
            self.progress, self.params, self.moments = progress, restored["params"], restored["optimizer"]
            log.info("continuing from update %d", step)
        self.fixed = with_frozen_masks(self.model, self.params, self.fixed, self.devices)

    def compiling(self) -> Compiling:
        """Begins to compile the updates that are to come. Several processes compile together, each program when its turn comes."""
        return Compiling(
            self.step, (self.params, self.moments, self.fixed), self.programs() if processes.alone() else []
        )

    def programs(self) -> list[Given]:
        """What the step is given beside its state, once for each program that is still to come."""
        numbers = [] if self.over else self.batches.of_each_shape(self.progress.step)
        batches = [self.devices.batch(self.batches[number]) for number in numbers if number < self.updates]
        kinds = (False, True) if uses_policy(self.model) else (False,)
        return [(batch, 0, self.pace, kind) for kind in kinds for batch in batches]

    def given(self, batch: dict[str, Any], number: int) -> Given:
        """What the step is given beside its state, in the update after `number` others, with a batch that lies on the devices."""
        return batch, number, self.pace, skips(self.model, self.run.seed, self.run.optim.warmup or 0, number)

    def update(self, batch: dict[str, Any], number: int) -> None:
        """Does one update, before which there were `number`, with a batch that lies on the devices. `sums` is what it reports."""
        given = self.given(batch, number)
        self.params, self.moments, self.sums = self.step(self.params, self.moments, self.fixed, *given)

    @property
    def unevaluated(self) -> bool:
        """Whether the evaluation of the present update is still to come: a signal stopped it, or the run now ends earlier."""
        step = self.progress.step
        due = step % self.evaluate_every == 0 or self._at_an_end
        return due and step > 0 and self.progress.evaluated[-1:] != [step]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do but to write the results."""
        return self._at_an_end and not self.unevaluated

    @property
    def _at_an_end(self) -> bool:
        out_of_patience = 0 < self.run.train.patience <= self.progress.since_best
        return self.progress.step >= self.updates or out_of_patience

    def save(self, score: float | None = None) -> None:
        """Saves a checkpoint of the present update, with the `score` of its evaluation if there was one."""
        self.checkpoints.save(self.progress.step, self.params, self.moments, dict(vars(self.progress)), score)
        self.saved = time.perf_counter()

    def stop_if_asked(self, interruption: Interruption) -> None:
        """Raises: Interrupted if a signal has asked to stop; a checkpoint of the present update is saved before."""
        if number := processes.greatest(interruption.signal or 0):
            if self.checkpoints.last() != self.progress.step:  # else it is there, perhaps with a score
                self.save()
            self.checkpoints.wait()
            raise Interrupted(number, self.progress.step)
