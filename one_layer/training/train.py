"""Training: from a config to checkpoints, metrics and scores. The same command, run again, continues an interrupted run."""

from contextlib import closing
from pathlib import Path
from typing import Any

from one_layer.runs.settings import RunConfig
from one_layer.training import results
from one_layer.training.beginning import opened
from one_layer.training.course import course
from one_layer.training.interruption import Interruption
from one_layer.training.trainer import Trainer


def train(run: RunConfig, workdir: str | Path, overrides: list[str]) -> dict[str, Any]:
    """Trains `run` in `workdir`, or continues it there, and scores the best checkpoint on the test sets.

    Returns: the content of `result.json`. Raises: UserError for bad input, and if the loss is no longer finite; Interrupted if a signal
    asks to stop, after a checkpoint was saved.
    """
    with opened(run, workdir) as ready:
        trainer = Trainer(ready)
        with closing(trainer.checkpoints), Interruption() as interruption:
            trainer.restore()
            with closing(trainer.compiling()) as programs:
                for batch, number in course(trainer, interruption):
                    with trainer.clock.stopped():
                        programs.wait(trainer.given(batch, number))
                    trainer.update(batch, number)
            trainer.stop_if_asked(interruption)
        return results.write(trainer, overrides)
