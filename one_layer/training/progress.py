"""The progress of a run, which a checkpoint stores beside the arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass
class Progress:
    """How far a run is, what it has cost, and by what a checkpoint recognises its folder and its text."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    flops: int = 0
    best: float | None = None
    since_best: int = 0
    vocabularies: list[str] = field(default_factory=list)  # fingerprints, source and target
    frozen: str | None = None  # fingerprint of frozen.npz
    text: dict[str, str] = field(default_factory=dict)  # fingerprints of the ids of the training and validation text
    evaluated: list[int] = field(default_factory=list)  # the updates of all evaluations on the validation set
    meter: dict[str, Any] = field(default_factory=dict)  # the unfinished line of metrics, and counts of skipped updates
    members: list[list[int]] = field(
        default_factory=list
    )  # [update, number]: from it on, so many runs shared the device
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def skipped(self) -> int:
        """The updates that were not applied, because their loss or gradient was not finite."""
        return int(self.meter.get("skipped", 0))

    def share(self, members: int) -> None:
        """Notes that so many runs share the device in the updates that follow."""
        before = [each for each in self.members if each[0] < self.step]  # nothing was trained since the others
        self.members = before if before and before[-1][1] == members else [*before, [self.step, members]]

    @property
    def shared(self) -> int | str | None:
        """How many runs shared the device; in words if their number changed, so that seconds are only compared with those of such a run.

        None if an earlier version trained, which did not store it.
        """
        if len(self.members) == 1:
            return self.members[0][1]
        return ", ".join(f"{number} from update {step}" for step, number in self.members) or None
