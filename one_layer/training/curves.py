"""Draws the curves of a run as an SVG file: the loss, the validation score and the share of mask bits that changed.

It needs no library, so that a run draws them without the cost of importing one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

Points = list[tuple[float, float]]  # (update, value)

_WIDTH, _HEIGHT = 640, 170  # of a panel with its margins, in pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 130, 28, 24
_MOST = 400  # points of a curve
_COLOURS = ("#0072b2", "#d55e00")  # distinct for colour-blind readers too
_STYLE = "font-family:sans-serif;font-size:11px"


class Panel(NamedTuple):
    """A title, and the curves under it by name."""

    title: str
    curves: dict[str, Points]


def draw(lines: Sequence[dict[str, Any]], select: str) -> str:
    """The SVG text of the metrics of a run. `select`: the validation score that selects the best checkpoint."""
    panels = [
        Panel(
            "loss (nats per target)",
            {"training": _points(lines, "train/nll"), "validation": _points(lines, "valid/nll")},
        )
    ]
    if select != "nll":
        panels.append(Panel(f"validation {select}", {select: _points(lines, f"valid/{select}")}))
    panels.append(
        Panel("share of mask entries changed since the last evaluation", {"flips": _points(lines, "mask/flips")})
    )
    panels = [panel for panel in panels if any(panel.curves.values())]
    last = max((line["step"] for line in lines), default=1)
    height = max(1, len(panels)) * _HEIGHT
    body = [_panel(panel, place * _HEIGHT, last) for place, panel in enumerate(panels)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
    )
    background = f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, background, *body, "</svg>\n"])


def _points(lines: Sequence[dict[str, Any]], name: str) -> Points:
    """The finite values of a name by update; of many, every n-th and the last."""
    found = [(line["step"], line[name]) for line in lines if name in line and math.isfinite(line[name])]
    thinned = found[:: -(-len(found) // _MOST)] if found else []
    return thinned if thinned[-1:] == found[-1:] else [*thinned, found[-1]]


def ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers from at most `low` to at least `high`."""
    if high - low <= 1e-6 * abs(low) or high - low < 1e-12:  # as good as equal
        high = low + (abs(low) if abs(low) > 1e-12 else 1.0)
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough)
    first = math.floor(low / step)
    return [place * step for place in range(first, math.ceil(high / step - 1e-9) + 1)]


def _panel(panel: Panel, top: int, last: int) -> str:
    values = [value for points in panel.curves.values() for _, value in points]
    marks = ticks(min(values), max(values))
    low, high = marks[0], marks[-1]

    def x(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last

    def y(value: float) -> float:
        return top + _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)

    parts = [f'<text x="{_LEFT}" y="{top + 16}" style="{_STYLE};font-weight:bold">{escape(panel.title)}</text>']
    for mark in marks:
        parts.append(f'<path d="M{_LEFT} {y(mark):.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, y(mark) + 4, f"{mark:.4g}", "end"))
    parts.append(_text(_LEFT, top + _HEIGHT - 8, "0", "middle"))
    parts.append(_text(x(last), top + _HEIGHT - 8, f"update {last:,}", "middle"))
    curves = [(name, points) for name, points in panel.curves.items() if points]
    for place, ((name, points), colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        path = "M" + "L".join(f"{x(step):.1f} {y(value):.1f}" for step, value in points)
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{x(points[-1][0]):.1f}" cy="{y(points[-1][1]):.1f}" r="2.5" fill="{colour}"/>')
        legend = f"{name} {points[-1][1]:.4g}"
        parts.append(_text(_WIDTH - _RIGHT + 8, top + _TOP + 14 * (place + 1), legend, "start", colour))
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" style="{_STYLE}">{escape(text)}</text>'
    )
