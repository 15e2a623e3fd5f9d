"""What our points say of a claim: whether two of them differ, and which is better."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from one_layer.report.point import Point

_TOLERANCE = 1.0  # BLEU, or a hundredth of it in another measure: smaller differences than this count as none

COUNTS = (  # in the captions of tables of claims
    "A difference counts as none if it is smaller than 1 BLEU (1 % accuracy, or 0.01 of another measure) or than two of its standard "
    "deviations; a claim that needs it is undecided then. The deviation is that of the differences between runs of one seed, where both "
    "models have the same seeds. A model with one run is taken to vary as much as the other one."
)


class Verdict(Enum):
    """What our points say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


Judge = Callable[[Point, Point], Verdict]
Judged = tuple[str, Verdict, str]  # the claim, the verdict, and what was seen


def lead(one: Point, other: Point) -> float:
    """By how much `one` is better than `other`, in units of their measure. Both have finished runs."""
    return (one.merit or 0.0) - (other.merit or 0.0)


def above(one: Point, other: Point) -> Verdict:
    """Whether `one` is better; undecided if the difference counts as none."""
    if abs(lead(one, other)) <= _least(one, other):
        return Verdict.UNDECIDED
    return Verdict.HOLDS if lead(one, other) > 0 else Verdict.FAILS


def equal(one: Point, other: Point) -> Verdict:
    """Whether both are about equal; undecided if the difference is large, but not larger than what seeds make of it."""
    if abs(lead(one, other)) <= _tolerance(one):
        return Verdict.HOLDS
    return Verdict.FAILS if abs(lead(one, other)) > _least(one, other) else Verdict.UNDECIDED


def no_worse(one: Point, other: Point) -> Verdict:
    """Whether `one` is better or about equal; undecided as `equal` is."""
    return Verdict.HOLDS if lead(one, other) > 0 else equal(one, other)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether all hold; undecided if some are, and none fails."""
    return next((each for each in (Verdict.FAILS, Verdict.UNDECIDED) if each in verdicts), Verdict.HOLDS)


def spread(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """The standard deviation of the difference between two models, from their values by seed; 0 if both have one value.

    Runs of one seed share what they draw, as far as their shapes and batches agree. So where both models have the same seeds, it is the
    deviation of the differences seed by seed; else that of two independent values. A model with one value is taken to vary as the
    other one does.
    """
    if one.keys() == other.keys() and len(one) > 1:
        return statistics.stdev(value - other[seed] for seed, value in one.items())
    variances = [statistics.variance(each.values()) for each in (one, other) if len(each) > 1]
    return (2 * statistics.fmean(variances)) ** 0.5 if variances else 0.0


def said(difference: float, its_spread: float) -> str:
    """A difference for people, with its standard deviation where there is one."""
    return f"difference {difference:+.4g}" + f" ± {its_spread:.2g}" * bool(its_spread)


def _tolerance(point: Point) -> float:
    return _TOLERANCE if point.bench.measure.startswith("bleu") else _TOLERANCE / 100


def _least(one: Point, other: Point) -> float:
    """The difference up to which one counts as none."""
    return max(_tolerance(one), 2 * spread(one.by_seed, other.by_seed))
