"""What our points say of a claim: whether two of them differ, and which is better."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from one_layer.report.point import Point
from one_layer.report.reading import Record
from one_layer.runs.convergence import merit

_TOLERANCE = 1.0  # BLEU, or a hundredth of it in another measure: smaller differences than this count as none

# What a verdict on a paper needs of every model that it is about. The last fifth of a training must bring no more than a fifth of what the
# whole of it brought, by the validation score: else it learns as fast at its end as before.
LEAST_SEEDS = 2
LEAST_UPDATES = 250
_LAST, _MOST_GAINED = 0.8, 0.2

COUNTS = (  # in the captions of tables of claims
    "A difference counts as none if it is smaller than 1 BLEU (1 % accuracy, or 0.01 of another measure) or than two of its standard "
    "deviations; a claim that needs it is undecided then. Where two models have two seeds or more in common, runs of one seed are compared "
    "with each other, and no other seed counts. A model with one run is taken to vary as much as the other one. A claim is undecided, "
    f"whatever the scores, where a model has fewer than {LEAST_SEEDS} seeds or a run has fewer than {LEAST_UPDATES} updates, or where the "
    "last fifth of a run brought more than a fifth of all that its validation score gained."
)


class Verdict(Enum):
    """What our points say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


Judge = Callable[[Point, Point], Verdict]


class Judged(NamedTuple):
    """A claim of a paper, the names of the models that it is about here, the verdict, and what was seen.

    `area_of` is what areas were measured on (`Record.validated`); other claims are about scores.
    """

    paper: str
    claim: str
    names: str
    verdict: Verdict
    seen: str
    area_of: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The claim with the names of the models."""
        return f"{self.claim}: {self.names}"

    def if_enough(self, points: Iterable[Point]) -> Judged:
        """The same; undecided, with the reason, where runs of the `points` that it is about are too few, too short or still learning."""
        points = list(points)
        records = [record for point in points for record in point.records]
        reasons = {
            f"fewer than {LEAST_SEEDS} seeds": any(len(point.by_seed) < LEAST_SEEDS for point in points),
            # An imported run has no updates of its own.
            f"fewer than {LEAST_UPDATES} updates": any(0 < r.result.get("steps", 0) < LEAST_UPDATES for r in records),
            "scores still rise at the end of a run": any(map(_still_gains, records)),
        }
        found = ", ".join(reason for reason, seen in reasons.items() if seen)
        return self._replace(verdict=Verdict.UNDECIDED, seen=f"{self.seen}; {found}") if found else self


class Difference(NamedTuple):
    """The means of two models over the runs that are compared, and the standard deviation of their difference; 0 without one."""

    one: float
    other: float
    deviation: float

    @property
    def mean(self) -> float:
        """By how much the first mean is above the second one."""
        return self.one - self.other

    def __str__(self) -> str:
        return f"difference {self.mean:+.4g}" + f" ± {self.deviation:.2g}" * bool(self.deviation)


def difference(one: Mapping[int, float], other: Mapping[int, float]) -> Difference:
    """The difference between two models, from their values by seed. Each has at least one.

    Runs of one seed share what they draw, as far as their shapes and batches agree. So where both models have two seeds or more in
    common, these are compared seed by seed, and no other seed counts. Else the values are taken as independent; a model with one value
    is then taken to vary as the other one does.
    """
    if len(common := one.keys() & other.keys()) > 1:
        one, other = ({seed: each[seed] for seed in common} for each in (one, other))
        deviation = statistics.stdev(one[seed] - other[seed] for seed in common)
    else:
        variances = [statistics.variance(each.values()) for each in (one, other) if len(each) > 1]
        deviation = (2 * statistics.fmean(variances)) ** 0.5 if variances else 0.0
    return Difference(statistics.fmean(one.values()), statistics.fmean(other.values()), deviation)


def above(one: Point, other: Point) -> Verdict:
    """Whether `one` is better; undecided if the difference counts as none. Both have finished runs of one bench."""
    lead, clear = _lead(one, other)
    if not clear:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if lead > 0 else Verdict.FAILS


def equal(one: Point, other: Point) -> Verdict:
    """Whether both are about equal; undecided if the difference is large, but not larger than what seeds make of it."""
    lead, clear = _lead(one, other)
    if abs(lead) <= _tolerance(one):
        return Verdict.HOLDS
    return Verdict.FAILS if clear else Verdict.UNDECIDED


def no_worse(one: Point, other: Point) -> Verdict:
    """Whether `one` is better or about equal; undecided as `equal` is."""
    return Verdict.HOLDS if _lead(one, other)[0] > 0 else equal(one, other)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether all hold; undecided if some are, and none fails."""
    return next((each for each in (Verdict.FAILS, Verdict.UNDECIDED) if each in verdicts), Verdict.HOLDS)


def _still_gains(record: Record) -> bool:
    """Whether the end of a run brought a large part of what its validation score gained; not without scores of its beginning."""
    lines = record.evaluated(record.select)
    scores = {line["step"]: merit(record.select, line[f"valid/{record.select}"]) for line in lines}
    late = [step for step in scores if step <= _LAST * max(scores)]
    if not late:
        return False
    best = max(scores.values())
    return best - max(scores[step] for step in late) > _MOST_GAINED * (best - scores[min(scores)])


def _lead(one: Point, other: Point) -> tuple[float, bool]:
    """By how much `one` is better than `other`, in units of their measure, and whether that counts."""
    seen = difference(one.by_seed, other.by_seed)
    lead = merit(one.bench.measure, seen.mean)
    return lead, abs(lead) > max(_tolerance(one), 2 * seen.deviation)


def _tolerance(point: Point) -> float:
    return _TOLERANCE if point.bench.measure.startswith("bleu") else _TOLERANCE / 100
