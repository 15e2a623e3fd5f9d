"""Draws the curves of a run as an SVG file: the loss, the validation score and the share of mask bits that changed."""

import io
import math
from collections.abc import Sequence
from typing import Any

Points = list[tuple[float, float]]  # (update, value)

_MOST = 400  # points of a curve
_COLOURS = ("#0072b2", "#d55e00")  # distinct for colour-blind readers too
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "one_layer", "text.parse_math": False, "font.size": 8}


def draw(lines: Sequence[dict[str, Any]], select: str) -> str:
    """The SVG text of the metrics of a run. `select`: the validation score that selects the best checkpoint."""
    import matplotlib  # late: it takes half a second
    from matplotlib.figure import Figure

    panels = {
        "loss (nats per target)": {"training": _points(lines, "train/nll"), "validation": _points(lines, "valid/nll")},
        f"validation {select}": {select: _points(lines, f"valid/{select}") if select != "nll" else []},
        "share of mask entries changed since the last evaluation": {"flips": _points(lines, "mask/flips")},
    }
    panels = {title: curves for title, curves in panels.items() if any(curves.values())}
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 1.8 * max(1, len(panels))))
        figure.subplots_adjust(left=0.1, right=0.78, top=0.93, bottom=0.07, hspace=0.4)
        for place, (title, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(len(panels), 1, place)
            axes.set_title(title, loc="left", fontweight="bold")
            axes.set_xlim(0, 1.02 * max(line["step"] for line in lines))
            axes.grid(axis="y", color="#ddd")
            for colour, (name, points) in zip(_COLOURS, curves.items(), strict=False):
                if points:
                    label = f"{name} {points[-1][1]:.4g}"
                    axes.plot(*zip(*points, strict=True), color=colour, label=label, marker=".", markevery=[-1])
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _points(lines: Sequence[dict[str, Any]], name: str) -> Points:
    """The finite values of a name by update; of many, every n-th and the last."""
    found = [(line["step"], line[name]) for line in lines if name in line and math.isfinite(line[name])]
    thinned = found[:: -(-len(found) // _MOST)] if found else []
    return thinned if thinned[-1:] == found[-1:] else [*thinned, found[-1]]
