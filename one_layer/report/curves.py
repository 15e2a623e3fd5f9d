"""Convergence, and score against bytes."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from one_layer.report import naming
from one_layer.report.drawing import COLOURS, MARKERS, legend, new_axes
from one_layer.report.figures import Picture
from one_layer.report.measures import MEASURES
from one_layer.report.points import Point
from one_layer.report.reading import Record

_MOST = len(COLOURS)  # lines in one picture


def convergence(points: list[Point], number: int) -> Picture | None:
    """Validation nll against the time of training: for fully weighted models, and for masked ones at the keep nearest to 0.5.

    Returns: None without any validation in the metrics.
    """
    chosen = [point for point in _central(points) if any(validation(record) for record in point.records)]
    if not chosen:
        return None
    figure, axes = new_axes("seconds of training, without evaluations", "validation nll")
    names = naming.distinct([point.config for point in chosen])
    for place, point in enumerate(chosen[:_MOST]):
        kept = f", keep {point.keep:g}" if point.masked else ""
        for count, curve in enumerate(filter(None, map(validation, point.records))):
            name = f"{names[place]}{kept}" if count == 0 else None
            style = "-" if len(curve) > 1 else "o"  # a line through one point would show nothing
            axes.plot(*zip(*curve, strict=True), style, color=COLOURS[place], linewidth=1.2, label=name, alpha=0.9)
    axes.set_xlim(left=0.0)
    legend(figure)
    left_out = len(chosen) - _MOST
    more = f" {left_out} further models are only in the CSV file." if left_out > 0 else ""
    caption = f"Each line is one run. Times depend on the device and on what else it did.{more}"
    bench = chosen[0].bench
    return Picture(f"convergence-{number}", f"Convergence: {bench.test}", caption, tuple(chosen), figure)


def validation(record: Record) -> list[tuple[float, float]]:
    """(seconds, validation nll) of a run's evaluations."""
    return [(line["seconds"], line["valid/nll"]) for line in record.metrics if "valid/nll" in line]


def _central(points: list[Point]) -> list[Point]:
    """Fully weighted models, and of every masked model the finished point with the keep nearest to 0.5."""
    best: dict[Any, Point] = {}
    for point in points:
        if point.whole and point.values:
            key = point.without(["model.keep"])
            if key not in best or abs(point.keep - 0.5) < abs(best[key].keep - 0.5):
                best[key] = point
    return list(best.values())


def score_against_bytes(points: list[Point], number: int) -> Picture | None:
    """Score against the bytes of a model, on a log axis. Returns: None for fewer than two models with bytes."""
    sized = [(point, point.bytes) for point in points if point.mean is not None]
    sizes = [size[0] for _, size in sized if size]
    if len(sizes) < 2:
        return None
    bench = points[0].bench
    figure, axes = new_axes("bytes of the model", MEASURES[bench.measure].name)
    _log_of_bytes(axes, sizes)
    groups: dict[str, list[tuple[Point, tuple[int, bool]]]] = {}
    for (point, size), name in zip(sized, naming.distinct([point.config for point, _ in sized]), strict=True):
        if size:
            file = "" if point.whole else f", {point.scored}"
            groups.setdefault(name + file, []).append((point, size))
    for place, (name, members) in enumerate(groups.items()):
        colour = COLOURS[place % len(COLOURS)]
        axes.errorbar(
            [size for _, (size, _) in members],
            [point.mean or 0.0 for point, _ in members],
            yerr=[point.deviation or 0.0 for point, _ in members],
            fmt=MARKERS[place % len(MARKERS)],
            color=colour,
            markerfacecolor=colour if members[0][1][1] else "none",
            capsize=3,
            label=name,
        )
    legend(figure)
    caption = (
        "Filled marks: bytes of a file on disk, vocabularies included. Hollow marks: no file; float32 weights counted, without "
        "vocabularies."
    )
    every = tuple(point for members in groups.values() for point, _ in members)
    return Picture(f"bytes-{number}", f"Score against bytes: {bench.title}", caption, every, figure)


def _log_of_bytes(axes: Axes, sizes: list[int]) -> None:
    """A log axis that begins at half the smallest size and ends at twice the largest, with marks such as 50 kB."""
    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 2, max(sizes) * 2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(sizes) < 20 * min(sizes) else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _bytes(size)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _bytes(size: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"
