"""The progress of a run, which a checkpoint stores beside the arrays."""

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
    # [update, number]: from it on, so many runs shared the devices; and [update, [kind, number]]: these were the devices.
    members: list[list[Any]] = field(default_factory=list)
    devices: list[list[Any]] = field(default_factory=list)
    commit: str | None = None  # of the code that did the last update, where it is known
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def skipped(self) -> int:
        """The updates that were not applied, because their loss or gradient was not finite."""
        return int(self.meter.get("skipped", 0))

    def trains(self, members: int, devices: list[Any], commit: str | None) -> None:
        """Notes what does the updates that follow: how many runs share the devices, their kind and number, and the code's commit."""
        self.members = self._noted(self.members, members)
        self.devices = self._noted(self.devices, devices)
        self.commit = commit

    def _noted(self, history: list[list[Any]], value: Any) -> list[list[Any]]:
        before = [each for each in history if each[0] < self.step]  # nothing was trained since the others
        return before if before and before[-1][1] == value else [*before, [self.step, value]]

    @property
    def shared(self) -> int | str:
        """How many runs shared the device; in words if their number changed, so that seconds are only compared with those of such a run."""
        if len(self.members) == 1:
            return self.members[0][1]
        return ", ".join(f"{number} from update {step}" for step, number in self.members)

    @property
    def device(self) -> str:
        """The kind of the devices that trained; in words if they changed."""
        if len(self.devices) == 1:
            return str(self.devices[0][1][0])
        return ", ".join(f"{number} x {kind} from update {step}" for step, (kind, number) in self.devices)
