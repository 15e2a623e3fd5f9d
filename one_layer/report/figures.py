"""The papers' figures from points: which lines belong together, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from one_layer.report import naming, published
from one_layer.report.drawing import legend, look, new_axes
from one_layer.report.measures import MEASURES
from one_layer.report.naming import Dimension
from one_layer.report.point import KEEP, Point, Setting, commands

LEAST = 3  # points on the axis of a figure; fewer are a row of a table


@dataclass(frozen=True)
class Line:
    """The points of one model at several keeps."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Picture:
    """A figure of the page: a short name for its files, a title, a caption, its points, and the drawing."""

    name: str
    title: str
    caption: str
    points: tuple[Point, ...]
    figure: Figure


@dataclass(frozen=True)
class Comparison:
    """Lines that differ in one dimension alone, and the best fully weighted model of each of their shapes, else the best of all.

    `where` tells it from other comparisons of its kind: what all of its lines have, and not those of all the others. Empty without others.
    """

    kind: str
    lines: tuple[Line, ...]
    dense: tuple[Point, ...]
    where: str = ""

    @property
    def addition(self) -> str:
        """`where`, to be put behind a title."""
        return f" ({self.where})" if self.where else ""


@dataclass(frozen=True)
class Kind:
    """A figure of paper A: what it compares, and its title."""

    name: str
    dimension: Dimension
    title: str


KINDS = (
    Kind("figure2", naming.WEIGHTS, "One random layer against L random layers (paper A, figure 2)"),
    Kind("figure3", naming.EMBEDDINGS, "Embeddings (paper A, figure 3)"),
    Kind("figure4", naming.SHAPE, "Width and depth (paper A, figure 4)"),
    Kind("figure5", naming.INITIALISATION, "Initialisation (paper A, figure 5)"),
)


def comparisons(points: Iterable[Point]) -> list[Comparison]:
    """All comparisons of one bench. Lines that no figure compares come last, as comparisons of kind `keep`."""
    every = [point for point in points if point.whole]
    masked, dense = [p for p in every if p.masked], [p for p in every if p.fully_weighted]
    found: list[Comparison] = []
    used: set[Setting] = set()
    for kind in KINDS:
        groups: dict[tuple[object, ...], dict[Setting, list[Point]]] = {}
        for point in masked:
            kinds = "".join(sorted(naming.letters(point.config)))  # a hybrid is compared with hybrids
            rest = point.without([*kind.dimension.keys, KEEP]), point.scored.search, kinds
            groups.setdefault(rest, {}).setdefault(point.without([KEEP]), []).append(point)
        for lines in groups.values():
            if len(lines) > 1:
                used |= lines.keys()
                found.append(_comparison(kind.name, lines, kind.dimension, dense))
    alone: dict[tuple[Setting, str], list[Point]] = {}
    for point in masked:
        if point.without([KEEP]) not in used:
            alone.setdefault((point.without([KEEP]), point.scored.search), []).append(point)
    for (setting, _), each in alone.items():
        if len(each) > 1:
            found.append(_comparison("keep", {setting: each}, naming.SHAPE, dense))
    return [each for kind in dict.fromkeys(each.kind for each in found) for each in _told_apart(kind, found)]


def shown(found: Iterable[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """The comparisons for figures, and those for a table: a figure needs two lines with enough keeps.

    A line with enough keeps that is in none of these figures has one of its own, of kind `keep`.
    """
    figures: list[Comparison] = []
    rest: list[Comparison] = []
    drawn: set[str] = set()
    for each in found:
        large = sum(map(_long, each.lines)) >= (1 if each.kind == "keep" else 2)
        (figures if large else rest).append(each)
        drawn |= {line.points[0].model for line in each.lines} if large else set()
    for each in rest:
        for line in each.lines:
            if _long(line) and line.points[0].model not in drawn:
                drawn.add(line.points[0].model)
                figures.append(Comparison("keep", (replace(line, name=line.points[0].model),), each.dense))
    return figures, rest


def _long(line: Line) -> bool:
    return len({point.keep for point in line.points if point.values}) >= LEAST


def _comparison(kind: str, lines: dict[Setting, list[Point]], dimension: Dimension, dense: list[Point]) -> Comparison:
    models = [(dimension.name(point.config), dict(setting), point.model) for setting, (point, *_) in lines.items()]
    named = [
        Line(name, tuple(sorted(each, key=lambda point: point.keep)))
        for name, each in zip(naming.told_apart(models), lines.values(), strict=True)
    ]
    shapes = {naming.shape(line.points[0].config) for line in named}
    scored_alike = [point for point in dense if point.scored.search == named[0].points[0].scored.search]
    same = [point for point in scored_alike if naming.shape(point.config) in shapes]
    return Comparison(kind, tuple(sorted(named, key=lambda line: line.name)), _best(same) or _best(scored_alike)[:1])


def _best(points: list[Point]) -> tuple[Point, ...]:
    """Of each shape the best of the finished points, the best of all first."""
    ranked = sorted((p for p in points if p.merit is not None), key=lambda point: point.merit or 0.0, reverse=True)
    return tuple({naming.shape(point.config): point for point in reversed(ranked)}.values())[::-1]


def _told_apart(kind: str, found: list[Comparison]) -> list[Comparison]:
    """The comparisons of a kind, which say what tells them from each other."""
    same = [each for each in found if each.kind == kind]
    if len(same) < 2:
        return same
    compared = next((each.dimension.keys for each in KINDS if each.name == kind), ())
    shared = [naming.common([line.points[0].config for line in each.lines]).split("; ") for each in same]
    everywhere = set.intersection(*map(set, shared))
    models = []
    for each, its in zip(same, shared, strict=True):
        point = each.lines[0].points[0]
        setting = dict(point.without([*compared, KEEP])) | {"search": point.scored.search}
        words = ", ".join(naming.without_folder(part) for part in its if part not in everywhere)
        models.append((words, setting, f"as {point.model}"))
    names = [name.removeprefix("; ") for name in naming.told_apart(models)]
    return [replace(each, where=name) for each, name in zip(same, names, strict=True)]


def draw(comparison: Comparison, number: int) -> Picture:
    """Score against keep, a line for each model, with one standard deviation as error bars."""
    first = comparison.lines[0].points[0]
    figure, axes = new_axes("keep: the share of the random weights that masks keep", MEASURES[first.bench.measure].name)
    for place, line in enumerate(comparison.lines):
        _line(axes, line, *look(place))
    for place, point in enumerate(comparison.dense):
        _level(axes, point, ("--", ":", "-.")[place % 3])
    every = tuple(point for line in comparison.lines for point in line.points) + comparison.dense
    papers = [each for each in published.numbers(commands(every)) if comparison.kind in each.figures]
    for place, each in enumerate(papers):
        of_paper(axes, each.keep, each, place)
    axes.set_xlim(0.0, 1.0)
    _missing(axes, comparison)
    legend(figure)
    title = next((kind.title for kind in KINDS if kind.name == comparison.kind), "Score against keep")
    return Picture(
        f"{comparison.kind}-{number}",
        f"{title}{comparison.addition}: {first.bench.title}",
        _caption(comparison, every),
        every,
        figure,
    )


def of_paper(axes: Axes, x: float, number: published.Number, place: int) -> None:
    """A number of paper A as a hollow grey mark, whose shape is that of its place among those of the picture."""
    axes.errorbar(
        [x],
        [number.mean],
        yerr=[number.deviation or 0.0],
        fmt=look(place)[1],
        color="grey",
        markerfacecolor="none",
        clip_on=False,
        label=number.label,
    )


def _line(axes: Axes, line: Line, colour: str, marker: str) -> None:
    there = [point for point in line.points if point.mean is not None]
    axes.errorbar(
        [point.keep for point in there],
        [point.mean or 0.0 for point in there],
        yerr=[point.deviation or 0.0 for point in there],
        label=line.name,
        color=colour,
        marker=marker,
        markersize=5,
        capsize=3,
    )


def _level(axes: Axes, point: Point, style: str) -> None:
    if point.mean is None:
        return
    axes.axhline(point.mean, linestyle=style, color="grey", label=point.label)
    if point.deviation:
        axes.axhspan(point.mean - point.deviation, point.mean + point.deviation, color="grey", alpha=0.15, linewidth=0)


def _missing(axes: Axes, comparison: Comparison) -> None:
    """Marks the keeps without any finished run at the bottom of the axes."""
    for place, line in enumerate(comparison.lines):
        keeps = [point.keep for point in line.points if point.mean is None]
        colour, _ = look(place)
        for keep in keeps:
            axes.plot(keep, 0.03 + 0.04 * place, "x", color=colour, transform=axes.get_xaxis_transform())


def _caption(comparison: Comparison, points: tuple[Point, ...]) -> str:
    finished = len({record.folder for point in points for record in point.records})
    missing = len({record.folder for point in points for record in point.missing})
    shared = naming.common([line.points[0].config for line in comparison.lines])
    text = (
        f"Mean over seeds; bars are one standard deviation. {finished} finished runs"
        f"{f', {missing} missing (× marks points without any)' if missing else ''}. "
        f"The same in all lines: {shared}."
    )
    return (
        text
        if all(p.deviation is not None for p in points if p.values)
        else text + " Points without bars have one run."
    )
