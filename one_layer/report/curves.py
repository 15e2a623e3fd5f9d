"""Convergence: validation nll in training."""

from operator import attrgetter
from typing import Any

from one_layer.report import texts
from one_layer.report.comparable import groups, measured
from one_layer.report.drawing import COLOURS, legend, new_axes
from one_layer.report.figures import Picture
from one_layer.report.point import KEEP, Point, own_first, without
from one_layer.report.reading import Record, alike_in_time

_MOST = len(COLOURS)  # models in one picture


def convergence(points: list[Point], number: int) -> list[Picture]:
    """Validation nll in training: for models without masks, and for masked ones at the keep nearest to 0.5.

    A picture for each validation text, by its ids, and each way to measure it, because nll is that of a token. It shows the best models,
    against the seconds of training, or against updates where seconds cannot be compared. Models without any validation in the metrics
    are left out.
    """
    drawn = [point for point in _central(points) if any(validation(record) for record in point.records)]
    of_run = {point.records[0].folder: point for point in drawn}
    found = groups([point.records[0] for point in drawn], "nll")
    return [
        _convergence(
            [of_run[record.folder] for record in each],
            number + place,
            f" ({texts.validated(measured(each, 'nll'))})" if len(found) > 1 else "",
        )
        for place, each in enumerate(found)
    ]


def _convergence(points: list[Point], number: int, text: str) -> Picture:
    best = sorted(points, key=attrgetter("merit"), reverse=True)[:_MOST]
    shown = [point for point in points if point in best]  # in the order of all pages
    axis = "seconds" if alike_in_time(record for point in shown for record in point.records) else "step"
    x = {"seconds": "seconds of training, without evaluations", "step": "update"}[axis]
    figure, axes = new_axes(x, "validation nll")
    for place, point in enumerate(shown):
        for count, curve in enumerate(filter(None, (validation(record, axis) for record in point.records))):
            style = "-" if len(curve) > 1 else "o"  # a line through one point would show nothing
            label = None if count else point.label
            axes.plot(*zip(*curve, strict=True), style, color=COLOURS[place], linewidth=1.2, label=label, alpha=0.9)
    axes.set_xlim(left=0.0)
    legend(figure)
    times = {
        "seconds": "Times depend on the device and on what else it did.",
        "step": "The runs had other devices, or populations of other sizes, so their seconds cannot be compared.",
    }
    more = f" {len(points) - _MOST} worse models are only in the tables." if len(points) > _MOST else ""
    caption = f"Each line is one run. {times[axis]}{more}"
    title = f"Convergence: validation nll of the models scored on {points[0].bench.text}{text}"
    return Picture(f"convergence-{number}", title, caption, tuple(points), figure)


def validation(record: Record, axis: str = "seconds") -> list[tuple[float, float]]:
    """(seconds or another axis, validation nll) of a run's evaluations."""
    return [(line[axis], line["valid/nll"]) for line in record.metrics if "valid/nll" in line]


def _central(points: list[Point]) -> list[Point]:
    """Models without masks, and of every masked model the finished point with the keep nearest to 0.5."""
    best: dict[Any, Point] = {}
    for point in own_first(points):
        key = without(point.setting, [KEEP])
        if key not in best or abs(point.keep - 0.5) < abs(best[key].keep - 0.5):
            best[key] = point
    return list(best.values())
