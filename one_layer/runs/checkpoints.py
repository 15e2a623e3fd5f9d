"""Checkpoints, with Orbax: the last ones and the best ones. They are written in the background, and atomically.

A checkpoint holds `params`, the optimiser's state and the run's progress. It does not hold the random layer, which can be drawn
again from the seed. Beside the progress it stores digests of everything, because not every flipped byte makes Orbax fail.
"""

import logging
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from orbax.checkpoint.checkpoint_managers import preservation_policy as policies

from one_layer.runs.digests import digest, digest_of_text
from one_layer.system.errors import UserError, not_in_utf8

log = logging.getLogger(__name__)

_score = itemgetter("score")  # by which Orbax ranks checkpoints, of their metrics
_SAVED = "saved"  # beside the keys of a progress: digests, and the score
_REPLACED = ".replaced"  # behind the step of a checkpoint that stays until another one of that step is complete


class Checkpoints:
    """The folder `checkpoints/` of a run. Each checkpoint has a folder in it, named after its update.

    A checkpoint saved at an evaluation has the score of that evaluation. One saved because training was interrupted has no score, and
    is deleted when the next one is complete, also where that one is of the same step, whose evaluation followed.
    """

    def __init__(self, folder: Path, keep_last: int = 1, read_only: bool = False) -> None:
        """Keeps the `keep_last` newest with a score and the one with the highest score."""
        self.folder = folder.resolve()
        try:
            str(self.folder).encode()
        except UnicodeEncodeError:
            raise not_in_utf8(self.folder) from None
        self._kept = _Kept(keep_last)
        self._replaces = False
        if not read_only:
            with self._writing():
                self._settle_replaced()
        elif alone := [old for old in self.folder.glob(f"*{_REPLACED}") if not old.with_suffix("").exists()]:
            log.warning(
                "%s is being replaced; if no process trains there, the same training command brings it back", alone[0]
            )
        try:
            # Not Orbax's own read_only, which adds nothing to these options but warnings.
            options = ocp.CheckpointManagerOptions(
                preservation_policy=self._kept,
                best_fn=_score,
                create=not read_only,
                cleanup_tmp_directories=not read_only,
            )
            self._manager = ocp.CheckpointManager(self.folder, options=options)
            self._metrics()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            # Orbax reads all scores here, to find the best.
            raise UserError(
                f"a file metrics/metrics in {self.folder} is damaged ({type(error).__name__}: {error}); remove the folder of that "
                "checkpoint"
            ) from None

    def save(
        self, step: int, params: Any, optimizer: Any, progress: dict[str, Any], score: float | None = None
    ) -> None:
        """Starts to write a checkpoint. The arrays are copied before this returns, so their buffers may be donated.

        It replaces the checkpoint of this step, if that one was saved before its evaluation. Raises: UserError if this checkpoint, or the
        one before it, cannot be written.
        """
        digests = {"params": digest(params), "optimizer": digest(optimizer), "progress": digest_of_text(progress)}
        self.wait()
        with self._writing():
            if step in self.steps():
                whole = self.folder / str(step)
                _by_the_first_process(lambda: whole.rename(whole.with_suffix(_REPLACED)))
                self._manager.reload()
                self._replaces = True
            saved = self._manager.save(
                step,
                args=ocp.args.Composite(
                    params=ocp.args.StandardSave(params),
                    optimizer=ocp.args.StandardSave(optimizer),
                    # A copy: it is written later, when the caller may have changed its own.
                    progress=ocp.args.JsonSave({**progress, _SAVED: {**digests, "score": score}}),
                ),
                metrics=None if score is None else {"score": score},
            )
            if not saved:  # Orbax writes no step before its latest one
                raise RuntimeError(f"Orbax has not saved step {step}; the latest is {self.last()}")

    def wait(self) -> None:
        """Waits until everything is written. Raises: UserError if it cannot be written."""
        with self._writing():
            self._manager.wait_until_finished()
            if self._replaces:
                self._settle_replaced()

    def _settle_replaced(self) -> None:
        """Removes what was replaced. Where no new checkpoint was completed, the old one takes its place again."""

        def settle() -> None:
            for old in self.folder.glob(f"*{_REPLACED}"):
                whole = old.with_suffix("")
                shutil.rmtree(old) if whole.exists() else old.rename(whole)

        _by_the_first_process(settle)
        self._replaces = False

    def last(self) -> int | None:
        """The step of the newest checkpoint; None if there is none."""
        return self._manager.latest_step()

    def best(self) -> int | None:
        """The step of the checkpoint with the highest score, of equal ones the first; None if there is none."""
        return _best(self._metrics())

    def scored(self) -> list[int]:
        """The steps of the checkpoints with a score, in ascending order."""
        return [step for step, found in self._metrics().items() if found]

    def score(self, step: int) -> float | None:
        """The score of the checkpoint of `step`; None if it was saved without one."""
        return (self._manager.metrics(step) or {}).get("score")

    def remove_superfluous(self) -> None:
        """Removes those that are not to be kept: a process that was killed had written a newer one, and not removed them yet."""
        metrics = self._metrics()
        for step in sorted(metrics.keys() - self._kept.steps(metrics)):
            self._manager.delete(step)

    def _metrics(self) -> dict[int, Any]:
        return {step: self._manager.metrics(step) for step in self.steps()}

    def steps(self) -> list[int]:
        """The steps of all checkpoints, in ascending order."""
        return sorted(self._manager.all_steps())

    def progress(self, step: int) -> dict[str, Any]:
        """The `progress` that was saved with the checkpoint of `step`. Raises: UserError for a missing or damaged checkpoint."""
        return self._progress(step)[0]

    def _progress(self, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The progress, and the digests that were stored beside it. The progress and the score are checked."""
        progress = self._restore(step, ocp.args.Composite(progress=ocp.args.JsonRestore())).progress
        if not isinstance(progress, dict):
            raise self._damaged(step, "its progress is not a JSON object")
        saved = progress.pop(_SAVED, {})
        self._compare(step, "progress", saved, digest_of_text(progress))
        self._compare(step, "score", saved, self.score(step))
        return progress, saved

    def restore(self, step: int, **like: Any) -> dict[str, Any]:
        """The items `params`, `optimizer` or both of the checkpoint of `step`, in the shapes of the given trees.

        Raises: UserError for a checkpoint that is missing, damaged or of another model.
        """
        shapes = {name: jax.tree.map(ocp.utils.to_shape_dtype_struct, tree) for name, tree in like.items()}
        items = {name: ocp.args.StandardRestore(tree) for name, tree in shapes.items()}
        found = dict(self._restore(step, ocp.args.Composite(**items)).items())
        saved = self._progress(step)[1]
        for name in found:
            self._compare(step, name, saved, digest(found[name]))
        return found

    def _compare(self, step: int, name: str, saved: Any, found: Any) -> None:
        if not isinstance(saved, dict) or saved.get(name) != found:
            raise self._damaged(step, f"its {name} is not what was saved")

    def _damaged(self, step: int, reason: str) -> UserError:
        only = self.steps() == [step]
        remove = "remove that folder to begin the training again" if only else "remove that folder to use another one"
        return UserError(
            f"the checkpoint {self.folder / str(step)} cannot be restored ({reason}); it is damaged or of another model"
            f"{', and there is no other one' if only else ''}: {remove}, or give a new --workdir"
        )

    def close(self) -> None:
        """Waits until everything is written, and closes the folder. Raises: UserError if it cannot be written."""
        self.wait()
        with self._writing():
            self._manager.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turns any error of Orbax about writing a checkpoint (for a full disk, a ValueError) into a UserError of one sentence."""
        try:
            yield
        except Exception as error:
            lines = [line for line in str(error).split("\n") if line.strip()] or [type(error).__name__]
            earlier = any(path.stem.isdecimal() and path.suffix in ("", _REPLACED) for path in self.folder.glob("*"))
            then = (
                "continues from the last one that is complete"
                if earlier
                else "begins anew, because there is no earlier one"
            )
            raise UserError(
                f"a checkpoint cannot be written to {self.folder} ({lines[-1].strip()[:300]}); free space there, or make the folder "
                f"writable. Then the same command {then}"
            ) from None

    def _restore(self, step: int, items: ocp.args.Composite) -> Any:
        if step not in self.steps():
            known = ", ".join(map(str, self.steps())) or "none"
            raise UserError(f"there is no checkpoint of step {step} in {self.folder}; available steps: {known}")
        try:
            return self._manager.restore(step, args=items)
        except Exception as error:  # Orbax and TensorStore raise many types of errors for a damaged folder
            raise self._damaged(step, f"{type(error).__name__}: {_cause(error)}") from None


def _by_the_first_process(change: Callable[[], object]) -> None:
    """Changes files of a folder that all processes see. The others go on when it is done."""
    if jax.process_index() == 0:
        change()
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("checkpoints changed")


def _cause(error: Exception) -> str:
    """The first line of an error of Orbax; of TensorStore's, which begin with all that failed because of it, the cause alone."""
    line = str(error).strip().split("\n")[0]
    line = re.split(r"\W*\[tensorstore_spec|\W*See full TensorStore details", line)[0]
    _, nested, cause = line.rpartition(": Error ")
    return f"Error {cause}"[:300] if nested else line[:300]


@dataclass
class _Kept(policies.PreservationPolicy):
    """Keeps the newest checkpoint; and of those with a score, the last ones and the best one."""

    last: int

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        kept = self.steps({each.step: each.metrics for each in checkpoints})
        return [each.step in kept for each in checkpoints]

    def steps(self, metrics: dict[int, dict[str, float] | None]) -> set[int | None]:
        """Those that are kept of the steps in ascending order, each with its `metrics`, if it has any."""
        scored = [step for step, found in metrics.items() if found]
        return {*scored[-self.last :], _best(metrics), *list(metrics)[-1:]}


def _best(metrics: dict[int, Any]) -> int | None:
    """The step with the highest score, of equal ones the first; None if none has a score."""
    return max((step for step, found in metrics.items() if found), key=lambda step: _score(metrics[step]), default=None)
