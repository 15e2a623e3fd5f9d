"""What a report answers first: the best model and its cost, and what masks cost or gain against dense models.

The rules are those of docs/report.md.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from one_layer.report import naming
from one_layer.report.labels import kind
from one_layer.report.point import Point
from one_layer.report.sizes import ABOUT_AS_SMALL, frontier
from one_layer.report.verdicts import Difference, Verdict, above, difference, no_worse

_MASKS = ("masks", "masks on L layers", "signs", "signs on L layers")
_OF_MASKS = {
    *(f"model.{key}" for key in ("weights", "sharing", "embedding", "scale_by_keep", "selection", "keep", "coats")),
    *(f"model.{key}" for key in ("threshold", "dynamic_scale", "score_init", "gains", "adapter_rank")),
    *naming.SHAPE,
    *naming.INITIALISATION,
}


class Pair(NamedTuple):
    """Two models of one size or shape: the one with masks, and the dense one."""

    masks: Point
    dense: Point

    @property
    def difference(self) -> Difference:
        """By how much the score of the masks is above that of the dense model."""
        return difference(self.masks.by_seed, self.dense.by_seed)

    @property
    def others(self) -> list[str]:
        """The words of the keys in which the two differ, but for those by which masks differ from trained weights, and for sizes."""
        ours, theirs = dict(self.masks.setting), dict(self.dense.setting)
        keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return sorted(key.rpartition(".")[2].replace("_", " ") for key in keys if key not in _OF_MASKS)

    @property
    def verdict(self) -> Verdict:
        """Whether the masks are better; undecided if the difference counts as none."""
        return above(self.masks, self.dense)


def best(points: Sequence[Point]) -> Point:
    """The point with the best score, whatever its checkpoint; of equal ones, the smaller one."""
    return max(points, key=lambda point: (point.merit, -point.bytes))


def smallest(points: Sequence[Point], top: Point) -> Point | None:
    """The smallest file that is no worse than the best, by the rule of claims; None if no file is, or the best is that file."""
    files = [point for point in points if point.is_file and _comparable(point, top)]
    good = [point for point in files if no_worse(point, top) is Verdict.HOLDS]
    found = min(good, key=attrgetter("bytes"), default=None)
    return None if found is top else found


def at_equal_shape(points: Sequence[Point]) -> list[Pair]:
    """For each shape that both have, the best model with trained masks and the best dense one, each by its best checkpoint."""
    shapes: dict[tuple[str, str], tuple[list[Point], list[Point]]] = {}
    for point in (point for point in points if point.whole):
        both = shapes.setdefault((naming.shape(point.config), point.scored.search), ([], []))
        if kind(point.config) in _MASKS or point.fully_weighted:
            both[point.fully_weighted].append(point)
    return [
        Pair(max(ours, key=attrgetter("merit")), max(dense, key=attrgetter("merit")))
        for ours, dense in shapes.values()
        if ours and dense
    ]


def at_equal_bytes(points: Sequence[Point]) -> tuple[list[Pair], list[Point]]:
    """Each file with trained masks that no smaller one equals, beside the best dense file that is no larger by more than 1 %.

    And those of them that are smaller than every dense file. Nothing without a dense file.
    """
    dense = [point for point in points if point.fully_weighted and point.is_file]
    searches: dict[str, list[Point]] = {}
    for point in points if dense else []:
        if kind(point.config) in _MASKS:
            searches.setdefault(point.scored.search, []).append(point)
    pairs, smaller = [], {}
    for ours in (point for masks in searches.values() for point in frontier(masks)):
        no_larger = [other for other in dense if other.bytes < ABOUT_AS_SMALL * ours.bytes]
        if fair := [other for other in no_larger if _comparable(ours, other)]:
            pairs.append(Pair(ours, max(fair, key=attrgetter("merit"))))
        elif not no_larger:
            smaller[ours.records[0].folder] = ours
    return pairs, list(smaller.values())


def _comparable(one: Point, other: Point) -> bool:
    return one.scored.search == other.scored.search or not (one.scored.search and other.scored.search)
