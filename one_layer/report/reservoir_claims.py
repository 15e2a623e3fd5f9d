"""Paper B's claims on reservoirs (arXiv 2012.15045, section 1), compared with our points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from one_layer.report import naming, texts
from one_layer.report.areas import areas_of, is_curve
from one_layer.report.comparable import groups, measured
from one_layer.report.point import Bench, Point
from one_layer.report.tables import Table
from one_layer.report.verdicts import COUNTS, Judged, Verdict, above, difference, no_worse
from one_layer.runs.convergence import LESS_IS_BETTER

_STACKS = ("model.encoder_layers", "model.decoder_layers")
_OF_RESERVOIRS = (
    *_STACKS,
    *(f"model.reservoir{part}" for part in ("", "_conv", "_width", "_direction")),
    "train.backskip",
)
_SCORE, _SKIP = "reservoirs improve the test score", "backskipping costs little"
_LEAST = 0.01  # smaller differences of two areas than this share, or than two standard deviations, count as none


def reservoir_claims(benches: dict[Bench, list[Point]], letters: Mapping[str, str] | None = None) -> Table:
    """A row for each claim and each model with reservoirs that has a counterpart without, on each test set; areas have one row for all.

    `letters` are those of the texts of the report.
    """
    rows: list[list[str]] = []
    areas: dict[object, list[str]] = {}  # by runs and axis: the same models may have been scored on several test sets
    for bench, points in benches.items():
        rows += [[bench.title, each.text, each.verdict.value, each.seen] for each in judged_scores(points)]
        for key, of, each in judged_areas(points):
            areas[key] = [texts.validated(of[:2], letters or {}), each.text, each.verdict.value, each.seen]
    caption = (
        "Each model with reservoirs is compared with all that have no reservoirs and are alike in all else but the number of layers. "
        f"{COUNTS} Of areas, a difference counts as none if it is smaller than 1 % or than two standard deviations. Backskipping costs "
        "little if it costs at most 1 BLEU (or 0.01 of another measure). T of areas is the end of the shortest of the runs that are "
        "compared. Areas by seconds say something only of runs that had the device for themselves."
    )
    return Table(
        "Claim by claim, paper B", caption, ["test set", "claim", "here", "what was seen"], [*rows, *areas.values()]
    )


def _pairs(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Every model with reservoirs and true gradients, with every model without reservoirs that is alike in all else."""
    for one in points:
        for other in points:
            with_and_without = _has_reservoirs(one) and not _skips(one) and not _has_reservoirs(other)
            if with_and_without and _alike(one, other, _OF_RESERVOIRS):
                yield one, other


def _alike(one: Point, other: Point, but: Sequence[str]) -> bool:
    """Whether two models were scored by one search and have one setting but for some keys."""
    return one.scored.search == other.scored.search and one.without(but) == other.without(but)


def judged_scores(points: Sequence[Point]) -> Iterator[Judged]:
    """What the scores of one bench say of paper B's claims."""
    points = _finished(points)
    for one, other in _pairs(points):
        text = f"{_SCORE}: {one.label} and {other.label}"
        yield Judged(_SCORE, text, above(one, other), _seen(one, other)).if_enough([one, other])
    for one in filter(_skips, points):
        for other in points:
            if not _skips(other) and _alike(one, other, ["train.backskip"]):
                judged = Judged(_SKIP, f"{_SKIP}: {one.label}", no_worse(one, other), _seen(one, other))
                yield judged.if_enough([one, other])


def judged_areas(points: Sequence[Point]) -> Iterator[tuple[object, tuple[str, ...], Judged]]:
    """What the areas of the runs of one bench say of paper B's claims: what was compared, what was measured, and the verdict."""
    for one, other in _pairs(_finished(points)):
        for axis, of, each in _areas(one, other):
            yield (axis, tuple(record.folder for record in (*one.records, *other.records))), of, each


def _finished(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.whole and point.values]


def _seen(one: Point, other: Point) -> str:
    return str(difference(one.by_seed, other.by_seed))


def _skips(point: Point) -> bool:
    return point.config.get("train.backskip", "off") != "off"


def _has_reservoirs(point: Point) -> bool:
    return "R" in naming.letters(point.config)


def _areas(one: Point, other: Point) -> Iterator[tuple[str, tuple[str, ...], Judged]]:
    """Judges by the areas over operations, and over seconds where these can be compared: the axis, what was measured, and the verdict."""
    runs = (*one.records, *other.records)
    measures = {str(record.result.get("valid", {}).get("select")) for record in runs}
    measure = min(measures)
    if len(measures) > 1 or len(groups(runs, measure)) > 1:
        return  # they are not scores of one text by one measure
    if not all(is_curve(record.evaluated(measure)) for record in runs):
        return
    found = areas_of(list(runs), measure)
    for axis in (axis for axis in ("flops", "seconds") if axis in found.until):
        until, areas = found.until[axis], iter(found.means[axis])
        ours, theirs = ({record.seed: next(areas) for record in point.records} for point in (one, other))
        seen = difference(ours, theirs)
        gain = -seen.mean if measure in LESS_IS_BETTER else seen.mean
        least = max(_LEAST * abs(seen.other), 2 * seen.deviation)
        verdict = Verdict.UNDECIDED if abs(gain) <= least else Verdict.HOLDS if gain > 0 else Verdict.FAILS
        word = {"flops": "operations", "seconds": "seconds"}[axis]
        shown = f"{seen.one:.4g} and {seen.other:.4g} of {measure}, {seen}, T = {until:.4g}"
        claim = f"reservoirs have a better area under the convergence curve by {word}"
        yield (
            axis,
            measured(runs, measure),
            Judged(claim, f"{claim}: {one.label} and {other.label}", verdict, shown).if_enough([one, other]),
        )
