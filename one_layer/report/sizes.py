"""Score against bytes: what a model is worth for the size of its file."""

import statistics
from operator import attrgetter
from string import ascii_letters

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from one_layer.report.drawing import INK, legend, look, marks, new_axes
from one_layer.report.figures import Picture
from one_layer.report.labels import kind, place
from one_layer.report.naming import MEASURES
from one_layer.report.plain_text import megabytes
from one_layer.report.point import Point
from one_layer.system.errors import counted

ABOUT_AS_SMALL = 1.01  # of two files; the names of folders alone make such differences
_MOST_NAMED = 12  # models of which each has a colour and a name of its own


def score_against_bytes(points: list[Point], number: int) -> Picture:
    """Score against the bytes of a model, on a log axis. Some models have bytes.

    The files of one model, in full precision and in fewer bits, are joined by a line. A dashed line joins the frontier: the files than
    which no smaller one has a better score. Many models are told apart by the kind of their weights, and only the frontier by name;
    those that are far worse than the others are not shown.
    """
    every = sized(points)
    bench = points[0].bench
    many = len({point.series for point in every}) > _MOST_NAMED
    shown = _without_the_worst(every) if many else every
    figure, axes = new_axes("bytes of the model", MEASURES[bench.measure])
    _log_of_bytes(axes, [point.bytes for point in shown])
    _draw_models(axes, shown, many)
    best = frontier(shown)
    if len(best) > 1:
        line = [(point.bytes, point.mean) for point in best]
        axes.plot(*zip(*line, strict=True), "--", color=INK, linewidth=0.8, label="frontier")
        if many:
            _name(axes, best)
    legend(figure)
    caption = (
        "Filled marks: bytes of a file on disk, vocabularies included. Hollow marks: no file; float32 weights counted, without "
        "vocabularies. A line joins the files of one model."
    )
    caption += " Dashed: no smaller file has a better score." * (len(best) > 1)
    caption += " The table of points has the names of all models." * many
    if len(shown) < len(every):
        caption += (
            f" {counted(len(every) - len(shown), 'mark')} far below the others are only there and in the CSV file."
        )
    return Picture(f"bytes-{number}", f"Score against bytes: {bench.title}", caption, tuple(every), figure)


def frontier(points: list[Point]) -> list[Point]:
    """The files than which no smaller one has a score as good, from the smallest to the largest.

    One that is larger by less than 1 % counts as smaller too: the names of folders alone make such differences.
    """
    files = sorted((point for point in sized(points) if point.is_file), key=lambda point: (point.bytes, -point.merit))
    best: list[Point] = []
    for file in files:
        better = any(other.merit > file.merit and other.bytes < ABOUT_AS_SMALL * file.bytes for other in files)
        if not better and (not best or file.merit > best[-1].merit):
            best.append(file)
    return best


def sized(points: list[Point]) -> list[Point]:
    """The points that have bytes."""
    return [point for point in points if point.bytes]


def _without_the_worst(points: list[Point]) -> list[Point]:
    """All but those that lie below the middle half by more than three times its height, which is Tukey's rule for what is far out."""
    low, _, high = statistics.quantiles((point.merit for point in points), n=4)
    return [point for point in points if point.merit >= low - 3 * (high - low)]


def _draw_models(axes: Axes, points: list[Point], many: bool) -> None:
    """Each model as a line through its marks, with a colour and a name for it or, where they are many, for its kind of weights."""
    kinds = {point.series: kind(point.config) if many else point.series for point in points}
    looks = {each: look(place(each) if many else number) for number, each in enumerate(dict.fromkeys(kinds.values()))}
    lines: dict[tuple[str, float], list[Point]] = {}
    groups: dict[tuple[str, bool], list[Point]] = {}
    for point in sorted(points, key=attrgetter("bytes")):
        lines.setdefault((point.series, point.keep), []).append(point)
        groups.setdefault((kinds[point.series], point.is_file), []).append(point)
    for (series, _), line in lines.items():
        places = [(point.bytes, point.mean) for point in line]
        axes.plot(*zip(*places, strict=True), color=looks[kinds[series]][0], linewidth=0.6, alpha=0.6)
    named: set[str] = set()
    for each, (colour, marker) in looks.items():
        for is_file in (True, False):
            members = groups.get((each, is_file), [])
            if not members:
                continue
            style = {"linestyle": "none", "markerfacecolor": colour if is_file else "none"}
            label = None if each in named else each
            marks(axes, [point.bytes for point in members], members, colour, marker, label=label, **style)
            named.add(each)


def _name(axes: Axes, points: list[Point]) -> None:
    """Puts a letter over each mark, and its name in the legend."""
    axes.margins(y=0.15)
    figure = axes.get_figure()
    assert figure is not None
    above = axes.transData + ScaledTranslation(0, 9 / 72, figure.dpi_scale_trans)
    for letter, point in zip(ascii_letters, points, strict=False):
        axes.plot(
            point.bytes,
            point.mean,
            linestyle="none",
            marker=f"${letter}$",
            markersize=5,
            color=INK,
            transform=above,
            label=point.label,
        )


def _log_of_bytes(axes: Axes, sizes: list[int]) -> None:
    """A log axis that begins at half the smallest size and ends at twice the largest, with marks such as 50 kB."""
    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 2, max(sizes) * 2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(sizes) < 20 * min(sizes) else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: megabytes(size)))
    axes.xaxis.set_minor_formatter(NullFormatter())
