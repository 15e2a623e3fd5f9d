"""Checkpoints through Orbax: the last ones, the best ones and every N-th, written in the background, never half there.

A checkpoint holds what cannot be drawn again: `params`, the optimiser's state and the run's progress. The random layer is a
function of the seed and is not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy as policies

from one_layer.errors import UserError


class Checkpoints:
    """The folder `checkpoints/` of a run, one folder a checkpoint, named by its step."""

    def __init__(
        self, workdir: Path, keep_last: int = 1, keep_every: int = 0, keep_best: int = 1, read_only: bool = False
    ) -> None:
        """The `keep_last` newest stay, the `keep_best` of the highest scores, and those of steps divisible by `keep_every`."""
        self.folder = (workdir / "checkpoints").resolve()
        kept: list[Any] = [policies.LatestN(keep_last), policies.BestN(get_metric_fn=_score, n=keep_best)]
        if keep_every:
            kept.append(policies.EveryNSteps(keep_every))
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policies.AnyPreservationPolicy(kept),
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

    def save(self, step: int, params: Any, optimizer: Any, progress: dict[str, Any], score: float) -> None:
        """Starts writing a checkpoint; the arrays are copied before this returns, so their buffers may be donated."""
        self._manager.save(
            step,
            args=ocp.args.Composite(
                params=ocp.args.StandardSave(params),
                optimizer=ocp.args.StandardSave(optimizer),
                progress=ocp.args.JsonSave(dict(progress)),  # written later, when the caller's has gone on
            ),
            metrics={"score": score},
        )

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
        """Waits until everything is written."""
        self._manager.wait_until_finished()
        self._manager.close()

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
