"""Score against bytes: what a model is worth for the size of its file."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from string import ascii_letters

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from one_layer.report import published
from one_layer.report.drawing import INK, legend, look, new_axes
from one_layer.report.figures import Picture, of_paper
from one_layer.report.labels import kind, place
from one_layer.report.naming import MEASURES
from one_layer.report.plain_text import megabytes
from one_layer.report.point import Point, commands
from one_layer.system.errors import counted

ABOUT_AS_SMALL = 1.01  # of two files; the names of folders alone make such differences
_MOST_NAMED = 12  # models of which each has a colour and a name of its own


@dataclass(frozen=True)
class Mark:
    """A point of the picture: its model in words, its bytes, and whether they are those of a file on disk."""

    point: Point
    name: str
    bytes: int
    is_file: bool


def score_against_bytes(points: list[Point], number: int) -> list[Picture]:
    """Score against the bytes of a model, on a log axis; no picture for fewer than two models with bytes.

    The files of one checkpoint, in full precision and in fewer bits, are joined by a line. A dashed line joins the frontier: the files than
    which no smaller one has a better score. Many models are told apart by the kind of their weights, and only the frontier by name;
    those that are far worse than the others are not shown.
    """
    every = marks(points)
    if len(every) < 2:
        return []
    bench = points[0].bench
    many = len({mark.name for mark in every}) > _MOST_NAMED
    shown = _without_the_worst(every) if many else every
    figure, axes = new_axes("bytes of the model", MEASURES[bench.measure])
    papers = [(number.bytes, number) for number in published.numbers(commands(points)) if number.bytes]
    _log_of_bytes(axes, [mark.bytes for mark in shown] + [int(size) for size, _ in papers])
    _draw_models(axes, shown, many)
    best = frontier(shown)
    if len(best) > 1:
        line = [(mark.bytes, mark.point.mean) for mark in best]
        axes.plot(*zip(*line, strict=True), "--", color=INK, linewidth=0.8, label="frontier")
        if many:
            _name(axes, best)
    for place_of_paper, (size, number_of_paper) in enumerate(papers):
        of_paper(axes, size, number_of_paper, place_of_paper)
    top = max((point for point in points if point.merit is not None), key=lambda point: point.merit or 0.0)
    if top.bytes is None:
        axes.axhline(
            top.mean or 0.0, linestyle=":", color=INK, linewidth=0.8, label=f"best, without a file: {top.label}"
        )
    legend(figure)
    caption = (
        "Filled marks: bytes of a file on disk, vocabularies included. Hollow marks: no file; float32 weights counted, without "
        "vocabularies. A line joins the files of one checkpoint of a model."
    )
    caption += " Dashed: no smaller file has a better score." * (len(best) > 1)
    caption += " The table of points has the names of all models." * many
    if len(shown) < len(every):
        caption += (
            f" {counted(len(every) - len(shown), 'mark')} far below the others are only there and in the CSV file."
        )
    drawn = tuple(mark.point for mark in every)
    return [Picture(f"bytes-{number}", f"Score against bytes: {bench.title}", caption, drawn, figure)]


def frontier(marks: list[Mark]) -> list[Mark]:
    """The files than which no smaller one has a score as good, from the smallest to the largest.

    One that is larger by less than 1 % counts as smaller too: the names of folders alone make such differences.
    """
    files = sorted((mark for mark in marks if mark.is_file), key=lambda mark: (mark.bytes, -_merit(mark)))
    best: list[Mark] = []
    for mark in files:
        better = any(_merit(other) > _merit(mark) and other.bytes < ABOUT_AS_SMALL * mark.bytes for other in files)
        if not better and (not best or _merit(mark) > _merit(best[-1])):
            best.append(mark)
    return best


def _merit(mark: Mark) -> float:
    assert mark.point.merit is not None  # only points with a score have marks
    return mark.point.merit


def marks(points: list[Point]) -> list[Mark]:
    """The points that have a score and bytes."""
    return [
        Mark(point, ", ".join(filter(None, [point.model, point.scored.layers, point.scored.more])), *size)
        for point in points
        if point.mean is not None and (size := point.bytes)
    ]


def _without_the_worst(marks: list[Mark]) -> list[Mark]:
    """All but those that lie below the middle half by more than three times its height, which is Tukey's rule for what is far out."""
    low, _, high = statistics.quantiles(map(_merit, marks), n=4)
    return [mark for mark in marks if _merit(mark) >= low - 3 * (high - low)]


def _draw_models(axes: Axes, marks: list[Mark], many: bool) -> None:
    """Each model as a line through its marks, with a colour and a name for it or, where they are many, for its kind of weights."""
    kinds = {mark.name: kind(mark.point.config) if many else mark.name for mark in marks}
    looks = {each: look(place(each) if many else number) for number, each in enumerate(dict.fromkeys(kinds.values()))}
    lines: list[list[Mark]] = []
    groups: dict[tuple[str, bool], list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.bytes):
        line = next((line for line in lines if _of_one_checkpoint(line[0], mark)), [])
        lines += [] if line else [line]
        line.append(mark)
        groups.setdefault((kinds[mark.name], mark.is_file), []).append(mark)
    for line in lines:
        places = [(mark.bytes, mark.point.mean or 0.0) for mark in line]
        axes.plot(*zip(*places, strict=True), color=looks[kinds[line[0].name]][0], linewidth=0.6, alpha=0.6)
    named: set[str] = set()
    for each, (colour, marker) in looks.items():
        for is_file in (True, False):
            members = groups.get((each, is_file), [])
            if not members:
                continue
            axes.errorbar(
                [mark.bytes for mark in members],
                [mark.point.mean or 0.0 for mark in members],
                yerr=[mark.point.deviation or 0.0 for mark in members],
                fmt=marker,
                color=colour,
                markerfacecolor=colour if is_file else "none",
                capsize=3,
                label=None if each in named else each,
            )
            named.add(each)


def _of_one_checkpoint(one: Mark, other: Mark) -> bool:
    """Whether two files are of one model, and of the same updates of the runs that both have."""
    here, there = one.point.updates, other.point.updates
    both = here.keys() & there.keys()
    alike = (one.name, one.point.keep) == (other.name, other.point.keep)
    return alike and bool(both) and all(here[folder] == there[folder] for folder in both)


def _name(axes: Axes, marks: list[Mark]) -> None:
    """Puts a letter over each mark, and its name in the legend."""
    axes.margins(y=0.15)
    figure = axes.get_figure()
    assert figure is not None
    above = axes.transData + ScaledTranslation(0, 9 / 72, figure.dpi_scale_trans)
    for letter, mark in zip(ascii_letters, marks, strict=False):
        axes.plot(
            mark.bytes,
            mark.point.mean or 0.0,
            linestyle="none",
            marker=f"${letter}$",
            markersize=5,
            color=INK,
            transform=above,
            label=mark.point.label,
        )


def _log_of_bytes(axes: Axes, sizes: list[int]) -> None:
    """A log axis that begins at half the smallest size and ends at twice the largest, with marks such as 50 kB."""
    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 2, max(sizes) * 2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(sizes) < 20 * min(sizes) else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: megabytes(size)))
    axes.xaxis.set_minor_formatter(NullFormatter())
