"""What all pictures share: size, colours that can be told apart on light and dark pages, and the way to SVG."""

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours for all kinds of sight, without black and yellow, which one of the two backgrounds would hide.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")

INK = "#123456"  # stands for the colour of the page's text, which an SVG in the page takes over
_HEIGHT = 3.0  # inches, without the names of the lines
_STYLE: Any = {
    **{"svg.fonttype": "none", "svg.hashsalt": "one_layer", "font.size": 9, "font.family": "sans-serif"},
    **dict.fromkeys(("text.color", "xtick.color", "ytick.color", "axes.edgecolor", "axes.labelcolor"), INK),
}


def look(place: int) -> tuple[str, str]:
    """The colour and the marker of a series by its place. No two of the first 36 places have the same pair."""
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def new_axes(x: str, y: str) -> tuple[Figure, Axes]:
    """An empty picture with named axes. Its size is readable on a narrow screen."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.0, _HEIGHT), layout="constrained")
        axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def marks(axes: Axes, x: Sequence[float], scores: Sequence[Any], colour: str, marker: str, **more: Any) -> None:
    """A mark for the `mean` of each score, with one standard deviation as error bar."""
    means, deviations = [score.mean for score in scores], [score.deviation or 0.0 for score in scores]
    axes.errorbar(x, means, yerr=deviations, color=colour, marker=marker, capsize=3, **more)


def legend(figure: Figure) -> None:
    """Names the lines below the axes, where no line is. The picture grows with the names, and shows them as they are: `$` is no math."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    wrapped = [textwrap.fill(name, 62) for name in names]
    lines = sum(name.count("\n") + 1 for name in wrapped)
    figure.set_figheight(_HEIGHT + 0.17 * lines)
    made = figure.legend(handles, wrapped, loc="outside lower left", fontsize=8, frameon=False, labelcolor=INK)
    for text in made.get_texts():
        text.set_parse_math(False)


def svg(figure: Figure, name: str) -> str:
    """The picture as SVG without a background. Its text has the colour of the page, and its ids begin with `name`."""
    file = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    size = r'<svg ([^>]*?)width="[\d.]+pt" height="[\d.]+pt"|<svg '  # the page decides it
    return re.sub(size, r'<svg role="img" \1', text, count=1)


def standalone(drawing: str) -> str:
    """What `svg` gave, as a file of its own, which follows the light or dark setting of the system."""
    style = "<style>svg { color: #1f2328 } @media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }</style>"
    return re.sub(r"(<svg [^>]*>)", rf"\g<1>{style}", drawing, count=1) + "\n"
