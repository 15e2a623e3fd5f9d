"""Checkpoints through Orbax: the last ones, the best ones and every N-th, written in the background, never half there.

A checkpoint holds what cannot be drawn again: `params`, the optimiser's state and the run's progress. The random layer is a
function of the seed and is not in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy as policies

from one_layer.errors import UserError


@dataclass
class _Kept(policies.PreservationPolicy):
    """Which checkpoints stay: the newest of all; and of those with a score the last ones, the best ones and every N-th update's."""

    last: int
    every: int
    best: int

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        scored = [each for each in checkpoints if each.metrics]
        ranked = sorted(scored, key=lambda each: _score(each.metrics))  # stable: of equal scores the later is better
        kept = {each.step for each in (*scored[-self.last :], *ranked[-self.best :])}
        kept |= {each.step for each in scored if self.every and each.step % self.every == 0}
        newest = max((each.step for each in checkpoints), default=None)
        return [each.step in kept or each.step == newest for each in checkpoints]


class Checkpoints:
    """The folder `checkpoints/` of a run, one folder a checkpoint, named by its update.

    A checkpoint of an evaluation has its score. One that was saved because training was interrupted has none, and goes when the
    next one is written.
    """

    def __init__(
        self, folder: Path, keep_last: int = 1, keep_every: int = 0, keep_best: int = 1, read_only: bool = False
    ) -> None:
        """The `keep_last` newest stay, the `keep_best` of the highest scores, and those of updates divisible by `keep_every`."""
        self.folder = folder.resolve()
        options = ocp.CheckpointManagerOptions(
            preservation_policy=_Kept(keep_last, keep_every, keep_best),
            best_fn=_score,
            create=not read_only,
            read_only=read_only,
            cleanup_tmp_directories=not read_only,
        )
        try:
            self._manager = ocp.CheckpointManager(self.folder, options=options)
        except ValueError as error:  # all scores are read at once, to know the best
            raise UserError(
                f"a file metrics/metrics in {self.folder} is damaged ({error}); remove the folder of that checkpoint"
            ) from None

    def save(
        self, step: int, params: Any, optimizer: Any, progress: dict[str, Any], score: float | None = None
    ) -> None:
        """Starts writing a checkpoint; the arrays are copied before this returns, so their buffers may be donated.

        Raises: UserError where this one, or the one before, cannot be written.
        """
        with self._writing():
            self._manager.save(
                step,
                args=ocp.args.Composite(
                    params=ocp.args.StandardSave(params),
                    optimizer=ocp.args.StandardSave(optimizer),
                    progress=ocp.args.JsonSave(dict(progress)),  # written later, when the caller's has gone on
                ),
                metrics=None if score is None else {"score": score},
            )

    def wait(self) -> None:
        """Waits until everything is written. Raises: UserError where that is not possible."""
        with self._writing():
            self._manager.wait_until_finished()

    def last(self) -> int | None:
        """The step of the newest checkpoint, None where there is none."""
        return self._manager.latest_step()

    def best(self) -> int | None:
        """The step of the checkpoint of the highest score, None where there is none."""
        return next(reversed(self.ranked()), None)

    def ranked(self) -> list[int]:
        """The steps of the checkpoints that have a score, from the lowest score to the highest; of equal ones the later is higher.

        `keep_best` goes by the same order (Orbax sorts stably): the first N from the end are the N best of the whole run for
        every N up to `keep_best`.
        """
        scores = {step: self._manager.metrics(step) for step in self.steps()}
        return sorted((step for step in scores if scores[step]), key=lambda step: _score(scores[step]))

    def set_aside(self, step: int) -> Path:
        """Renames the folder of a checkpoint that cannot be read, so that its update can be saved again; returns the new path."""
        aside = self.folder / f"damaged-{step}"
        shutil.rmtree(aside, ignore_errors=True)
        (self.folder / str(step)).rename(aside)
        self._manager.reload()
        return aside

    def steps(self) -> list[int]:
        """All steps there are, rising."""
        return sorted(self._manager.all_steps())

    def progress(self, step: int) -> dict[str, Any]:
        """What was saved as `progress` with the checkpoint of `step`. Raises: UserError for a missing or damaged one."""
        return self._restore(step, ocp.args.Composite(progress=ocp.args.JsonRestore())).progress

    def restore(self, step: int, **like: Any) -> dict[str, Any]:
        """The items `params`, `optimizer` or both of the checkpoint of `step`, shaped as the given trees are.

        Raises: UserError for a checkpoint that is missing, damaged or of another model.
        """
        items = {name: ocp.args.StandardRestore(_abstract(tree)) for name, tree in like.items()}
        return dict(self._restore(step, ocp.args.Composite(**items)).items())

    def close(self) -> None:
        """Waits until everything is written. Raises: UserError where that is not possible."""
        with self._writing():
            self._manager.wait_until_finished()
            self._manager.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Whatever Orbax raises where a checkpoint cannot be written (a full disk is a ValueError), as one sentence."""
        try:
            yield
        except Exception as error:
            reason = next(
                (line for line in reversed(str(error).strip().split("\n")) if line.strip()), type(error).__name__
            )
            raise UserError(
                f"a checkpoint cannot be written to {self.folder} ({reason.strip()[:300]}); make room there, or make the folder "
                "writable. The checkpoints before it are whole: the same command goes on from the last one"
            ) from None

    def _restore(self, step: int, items: ocp.args.Composite) -> Any:
        if step not in self.steps():
            known = ", ".join(map(str, self.steps())) or "none"
            raise UserError(f"there is no checkpoint of step {step} in {self.folder}; there are: {known}")
        try:
            return self._manager.restore(step, args=items)
        except Exception as error:  # Orbax and TensorStore raise many kinds for a damaged folder
            reason = str(error).strip().split("\n")[0][:300]
            raise UserError(
                f"the checkpoint {self.folder / str(step)} cannot be restored ({type(error).__name__}: {reason}); it is "
                "damaged or of another model: remove that folder to go on from an earlier one, or take a fresh --workdir"
            ) from None


def _score(metrics: dict[str, float]) -> float:
    return metrics["score"]


def _abstract(tree: Any) -> Any:
    return jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
