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
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def skipped(self) -> int:
        """The updates that were not applied, because their loss or gradient was not finite."""
        return int(self.meter.get("skipped", 0))
