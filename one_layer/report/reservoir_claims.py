"""Paper B's claims on reservoirs (arXiv 2012.15045, section 1), compared with our points."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from one_layer.report import naming
from one_layer.report.point import Bench, Point
from one_layer.report.reading import Record, alike_in_time
from one_layer.report.tables import Table
from one_layer.report.verdicts import COUNTS, Judged, Verdict, above, lead, no_worse, said, spread
from one_layer.runs.convergence import AXES, LESS_IS_BETTER, means

_STACKS = ("model.encoder_layers", "model.decoder_layers")
_OF_RESERVOIRS = (
    *_STACKS,
    *(f"model.reservoir{part}" for part in ("", "_conv", "_width", "_direction")),
    "train.backskip",
)
_LEAST = 0.01  # smaller differences of two areas than this share, or than two standard deviations, count as none


def reservoir_claims(benches: dict[Bench, list[Point]]) -> Table:
    """A row for each claim and each model with reservoirs that has a counterpart without, on each test set; areas have one row for all."""
    rows: list[list[str]] = []
    areas: dict[str, list[str]] = {}  # by their claims: the same models may have been scored on several test sets
    for bench, points in benches.items():
        known = [point for point in points if point.whole and point.values]
        rows += [[bench.title, claim, verdict.value, seen] for claim, verdict, seen in _scores(known)]
        for one, other in _pairs(known):
            areas |= {claim: ["", claim, verdict.value, seen] for claim, verdict, seen in _areas(one, other)}
    caption = (
        "Each model with reservoirs is compared with all that have no reservoirs and are alike in all else but the number of layers. "
        f"{COUNTS} Of areas, a difference counts as none if it is smaller than 1 % or than two standard deviations. Backskipping costs "
        "little if it costs at most 1 BLEU (or 1 % accuracy). T of areas is the end of the shortest of the runs that are compared."
    )
    return Table(
        "Claim by claim, paper B", caption, ["test set", "claim", "here", "what was seen"], [*rows, *areas.values()]
    )


def _pairs(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Every model with reservoirs and true gradients, with every model without reservoirs that is alike in all else."""
    for one in points:
        for other in points:
            with_and_without = _has_reservoirs(one) and not _skips(one) and not _has_reservoirs(other)
            if with_and_without and one.without(_OF_RESERVOIRS) == other.without(_OF_RESERVOIRS):
                yield one, other


def _scores(points: Sequence[Point]) -> Iterator[Judged]:
    for one, other in _pairs(points):
        yield f"reservoirs improve the test score: {one.name} and {other.name}", above(one, other), _lead(one, other)
    for one in filter(_skips, points):
        for other in points:
            if not _skips(other) and one.without(["train.backskip"]) == other.without(["train.backskip"]):
                yield f"backskipping costs little: {one.name}", no_worse(one, other), _lead(one, other)


def _lead(one: Point, other: Point) -> str:
    return said(lead(one, other), spread(one.by_seed, other.by_seed))


def _skips(point: Point) -> bool:
    return point.config.get("train.backskip", "off") != "off"


def _has_reservoirs(point: Point) -> bool:
    return "R" in naming.letters(point.config)


def _areas(one: Point, other: Point) -> Iterator[Judged]:
    """Judges by the areas over operations, and over seconds where these can be compared."""
    runs = (*one.records, *other.records)
    measures = {str(record.result.get("valid", {}).get("select")) for record in runs}
    for axis in ("flops", "seconds"):
        lines = [_evaluations(record, measures) for record in runs]
        known = len(measures) == 1 and all(each and all(AXES[axis] in line for line in each) for each in lines)
        if not known or (axis == "seconds" and not alike_in_time(runs)):
            continue
        (measure,) = measures
        until, found = means(lines, measure, axis)
        areas = iter([-area if measure in LESS_IS_BETTER else area for area in found])
        ours, theirs = ({record.seed: next(areas) for record in point.records} for point in (one, other))
        mean, others = statistics.fmean(ours.values()), statistics.fmean(theirs.values())
        gain, deviation = mean - others, spread(ours, theirs)
        least = max(_LEAST * abs(others), 2 * deviation)
        verdict = Verdict.UNDECIDED if abs(gain) <= least else Verdict.HOLDS if gain > 0 else Verdict.FAILS
        word = {"flops": "operations", "seconds": "seconds"}[axis]
        seen = f"{abs(mean):.4g} and {abs(others):.4g} of {measure}, {said(gain, deviation)}, T = {until:.4g}"
        yield (
            f"reservoirs have a better area under the convergence curve by {word}: {one.name} and {other.name}",
            verdict,
            seen,
        )


def _evaluations(record: Record, measures: set[str]) -> list[dict[str, Any]]:
    return [line for line in record.metrics if any(f"valid/{measure}" in line for measure in measures)]
