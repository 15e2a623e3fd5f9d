"""The papers' figures from points: which lines belong together, and how they are drawn."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from matplotlib.figure import Figure

from one_layer.report import naming
from one_layer.report.drawing import legend, look, marks, new_axes
from one_layer.report.naming import MEASURES
from one_layer.report.point import Line, Point, alike, lines_of

LEAST = 3  # points on the axis of a figure


@dataclass(frozen=True)
class Picture:
    """A figure of the page: a short name for its files, a title, a caption, its points, and the drawing."""

    name: str
    title: str
    caption: str
    points: tuple[Point, ...]
    figure: Figure


@dataclass(frozen=True)
class Kind:
    """A figure of paper A: the keys that it compares, and its title."""

    name: str
    keys: tuple[str, ...]
    title: str


KINDS = (
    Kind("figure2", naming.WEIGHTS, "One random layer against L random layers (paper A, figure 2)"),
    Kind("figure3", naming.EMBEDDINGS, "Embeddings (paper A, figure 3)"),
    Kind("figure4", naming.SHAPE, "Width and depth (paper A, figure 4)"),
    Kind("figure5", naming.INITIALISATION, "Initialisation (paper A, figure 5)"),
)
ALONE = Kind("keep", (), "Score against keep")  # of a line that is compared with none


@dataclass(frozen=True)
class Comparison:
    """Lines that differ in one thing alone, and the best fully weighted model of each of their shapes, else the best of all.

    `where` tells it from others of its kind; it is empty without others.
    """

    kind: Kind
    lines: tuple[Line, ...]
    dense: tuple[Point, ...]
    where: str = ""


def comparisons(points: Iterable[Point]) -> list[Comparison]:
    """The figures of one bench: of each group of lines where two or more have enough keeps, and of each such line that is in no group."""
    every = [point for point in points if point.whole]
    dense = [point for point in every if point.fully_weighted]
    lines = [line for line in lines_of(every) if line[0].masked]
    found = [
        _comparison(kind, group, dense)
        for kind in KINDS
        for group in alike(lines, kind.keys, kinds_apart=True)
        if sum(map(_long, group)) > 1
    ]
    drawn = {line[0].series for each in found for line in each.lines}
    found += [_comparison(ALONE, [line], dense) for line in lines if _long(line) and line[0].series not in drawn]
    times = Counter(each.kind for each in found)
    return [
        replace(each, where=f" (with {each.lines[0][0].series})") if times[each.kind] > 1 else each for each in found
    ]


def _long(line: Line) -> bool:
    return len({point.keep for point in line}) >= LEAST


def _comparison(kind: Kind, lines: list[Line], dense: list[Point]) -> Comparison:
    shapes = {naming.shape(line[0].config) for line in lines}
    scored_alike = [point for point in dense if point.scored.search == lines[0][0].scored.search]
    same = [point for point in scored_alike if naming.shape(point.config) in shapes]
    ordered = tuple(sorted(lines, key=lambda line: line[0].series))
    return Comparison(kind, ordered, _best(same) or _best(scored_alike)[:1])


def _best(points: list[Point]) -> tuple[Point, ...]:
    """Of each shape the best of the finished points, the best of all first."""
    ranked = sorted(points, key=attrgetter("merit"), reverse=True)
    return tuple({naming.shape(point.config): point for point in reversed(ranked)}.values())[::-1]


def draw(comparison: Comparison, number: int) -> Picture:
    """Score against keep, a line for each model, with one standard deviation as error bars."""
    bench = comparison.lines[0][0].bench
    figure, axes = new_axes("keep: the share of the random weights that masks keep", MEASURES[bench.measure])
    for place, line in enumerate(comparison.lines):
        marks(axes, [point.keep for point in line], line, *look(place), markersize=5, label=line[0].series)
    for place, point in enumerate(comparison.dense):
        axes.axhline(point.mean, linestyle=("--", ":", "-.")[place % 3], color="grey", label=point.label)
        if off := point.deviation:
            axes.axhspan(point.mean - off, point.mean + off, color="grey", alpha=0.15, linewidth=0)
    every = tuple(point for line in comparison.lines for point in line) + comparison.dense
    axes.set_xlim(0.0, 1.0)
    legend(figure)
    return Picture(
        f"{comparison.kind.name}-{number}",
        f"{comparison.kind.title}{comparison.where}: {bench.title}",
        _caption(comparison, every),
        every,
        figure,
    )


def _caption(comparison: Comparison, points: tuple[Point, ...]) -> str:
    finished = len({record.folder for point in points for record in point.records})
    shared = naming.common([line[0].config for line in comparison.lines])
    text = f"Mean over seeds; bars are one standard deviation. {finished} runs. The same in all lines: {shared}."
    return text if all(p.deviation is not None for p in points) else text + " Points without bars have one run."
