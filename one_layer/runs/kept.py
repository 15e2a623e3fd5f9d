"""Which checkpoints of a run are kept, and in which order their scores put them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orbax.checkpoint.checkpoint_managers import preservation_policy as policies


@dataclass
class Kept(policies.PreservationPolicy):
    """Keeps the newest checkpoint; and of those with a score, the last ones and the best ones."""

    last: int
    best: int

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        kept = self.steps({each.step: each.metrics for each in checkpoints})
        return [each.step in kept for each in checkpoints]

    def steps(self, metrics: dict[int, dict[str, float] | None]) -> set[int]:
        """Those that are kept of the steps in ascending order, each with its `metrics`, if it has any."""
        scored = [step for step, found in metrics.items() if found]
        return {*scored[-self.last :], *ranked(metrics)[-self.best :], *list(metrics)[-1:]}


def score_of(metrics: dict[str, float]) -> float:
    """The score by which Orbax ranks a checkpoint."""
    return metrics["score"]


def ranked(metrics: dict[int, Any]) -> list[int]:
    """The steps that have metrics, from the lowest score to the highest; of equal scores, the first one ranks higher."""
    return sorted((step for step, found in metrics.items() if found), key=lambda step: (score_of(metrics[step]), -step))
