"""Paper A's claims about its figures, compared with our points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from one_layer.report.figures import Comparison, Line
from one_layer.report.naming import INITIALISATION, depths
from one_layer.report.points import Bench, Point
from one_layer.report.tables import Table


class BestKeep(NamedTuple):
    """A claim about one line: the range of its best keep, and whether it is worst at the ends of the line."""

    claim: str
    lowest: float
    highest: float
    worst_at_ends: bool


# By task. Paper A makes claims about these alone: section 4, and for QQP and MNLI its paragraph "QQP and MNLI results".
_BEST_KEEPS = {
    "translation": BestKeep("best around keep 0.5, worst near 0 and 1", 0.4, 0.6, True),
    "classification": BestKeep("best around keep 0.7", 0.6, 0.8, False),
}
_TOLERANCE = 1.0  # BLEU, or 1 % accuracy: smaller differences than this, or than two standard deviations, count as none


def claims(comparisons: dict[Bench, list[Comparison]]) -> Table:
    """A row for each claim, test set and comparison that can say something about it."""
    rows = [
        [bench.test, claim, verdict, seen]
        for bench, each in comparisons.items()
        if bench.task in _BEST_KEEPS
        for comparison in each
        for claim, verdict, seen in _judged(comparison)
    ]
    caption = (
        "A claim holds here if it holds at every keep that both models have. A difference counts as none if it is smaller than 1 BLEU "
        "(or 1 % accuracy) or than two standard deviations. Around a keep: at most 0.1 from it. With few keeps or seeds, this says little."
    )
    return Table("Claim by claim", caption, ["test set", "claim of paper A", "here", "what was seen"], rows)


def _judged(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    for line in comparison.lines:
        known = _BEST_KEEPS[line.points[0].bench.task]
        if comparison.kind in ("figure2", "keep") and (found := _best_keep(line, known)):
            yield f"{line.name}: {known.claim}", *found
    pairs = {
        "figure2": ("one layer", "L layers", "one layer about equals L layers", _equal),
        "figure3": ("pre-trained, masked", "random, masked", "pre-trained embeddings help", _above),
    }
    if comparison.kind in pairs:
        one, other, claim, judge = pairs[comparison.kind]
        lines = {line.name: line for line in comparison.lines}
        if one in lines and other in lines:
            yield from _pair(claim, lines[one], lines[other], judge)
    if comparison.kind == "figure5":
        for kaiming in comparison.lines:
            for xavier in comparison.lines:
                if _differ_in_scheme(kaiming, xavier, "kaiming_uniform", "xavier_uniform"):
                    yield from _pair("Kaiming uniform is above Xavier uniform", kaiming, xavier, _above)
    if comparison.kind == "figure4":
        for wide in comparison.lines:
            for base in comparison.lines:
                if _is_wider(wide, base):
                    yield from _pair(f"wider is better: {wide.name} above {base.name}", wide, base, _above)


def _best_keep(line: Line, known: BestKeep) -> tuple[str, str] | None:
    points = sorted((point for point in line.points if point.mean is not None), key=lambda point: point.merit or 0.0)
    if len(points) < 3:
        return None
    worst, *_, best = points
    keeps = [point.keep for point in points]
    at_ends = worst.keep in (min(keeps), max(keeps))
    holds = known.lowest <= best.keep <= known.highest and (at_ends or not known.worst_at_ends)
    return _verdict(holds), f"best at {best.keep:g} ({best.mean:.4g}), worst at {worst.keep:g} ({worst.mean:.4g})"


def _pair(claim: str, one: Line, other: Line, judge: Callable[[Point, Point], bool]) -> Iterator[tuple[str, str, str]]:
    others = {point.keep: point for point in other.points if point.mean is not None}
    pairs = [(point, others[point.keep]) for point in one.points if point.mean is not None and point.keep in others]
    if not pairs:
        return
    differences = {a.keep: (a.mean or 0.0) - (b.mean or 0.0) for a, b in pairs}
    against = [f"{a.keep:g}" for a, b in pairs if not judge(a, b)]
    mean = sum(differences.values()) / len(differences)
    seen = f"mean difference {mean:+.4g} over {len(pairs)} keeps, from {min(differences.values()):+.4g} to {max(differences.values()):+.4g}"
    yield claim, _verdict(not against), seen + (f"; not at keep {', '.join(against)}" if against else "")


def _slack(one: Point, other: Point) -> float:
    unit = _TOLERANCE if one.bench.measure.startswith("bleu") else _TOLERANCE / 100
    spread = ((one.deviation or 0.0) ** 2 + (other.deviation or 0.0) ** 2) ** 0.5
    return max(unit, 2 * spread)


def _equal(one: Point, other: Point) -> bool:
    return abs((one.mean or 0.0) - (other.mean or 0.0)) <= _slack(one, other)


def _above(one: Point, other: Point) -> bool:
    return (one.merit or 0.0) > (other.merit or 0.0)


def _is_wider(one: Line, other: Line) -> bool:
    first, second = one.points[0].config, other.points[0].config
    return first["model.d_model"] > second["model.d_model"] and depths(first) == depths(second)


def _differ_in_scheme(one: Line, other: Line, *schemes: str) -> bool:
    """Whether two models have these schemes, and are drawn alike in all else."""
    first, second = one.points[0].config, other.points[0].config
    scheme = "model.init_scheme"
    same = all(first.get(key) == second.get(key) for key in INITIALISATION.keys if key != scheme)
    return same and (first.get(scheme), second.get(scheme)) == schemes


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"
