"""AUCC, the area under the convergence curve (arXiv 2012.15045, abstract and section 2), from a run's evaluations.

The paper's form, which this project could not verify, is the integral of a validation score over wall-clock time from 0 to T. Here it
is computed over three axes: seconds of training, updates, and operations (FLOPs). Seconds depend on the machine; the others do not.

Conventions, where the paper says none:

- The curve joins the evaluations by straight lines (the trapezoid rule).
- A score of which more is better is 0 at the beginning. Of a score of which less is better (such as `nll`), the first value also holds
  before.
- A curve that ends before T keeps its last value; one that ends after T is cut there.
- The area divided by T is the mean score up to T. It has the unit of the score, and is what tables show.

This module needs no JAX.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

AXES = {"seconds": "seconds", "updates": "step", "flops": "train/flops"}  # axis: its name in metrics.jsonl
# Of every other score, more is better. Runs up to version 0.7.0 may have bits of characters.
LESS_IS_BETTER = ("nll", "perplexity", "bits_per_byte", "bits_per_character")


def merit(score: str, value: float) -> float:
    """The value of a score as a number of which more is better."""
    return -value if score in LESS_IS_BETTER else value


def selected_by(metrics: Sequence[Mapping[str, Any]], wanted: str) -> str:
    """The score that selects the best checkpoint: the `wanted` one, or nll where the evaluations lack it: it cannot measure their text."""
    evaluated = [line for line in metrics if "valid/nll" in line]
    return wanted if not evaluated or any(f"valid/{wanted}" in line for line in evaluated) else "nll"


@dataclass(frozen=True)
class Curve:
    """The evaluations of a run: at `x` (rising), the score `y`."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    less_is_better: bool = False

    def area(self, until: float) -> float:
        """The integral from 0 to `until`, in units of x times y."""
        start = self.y[0] if self.less_is_better else 0.0
        x, y = np.array([0.0, *self.x]), np.array([start, *self.y])
        before = x < until
        return float(np.trapezoid([*y[before], np.interp(until, x, y)], [*x[before], until]))

    def mean(self, until: float) -> float:
        """The area up to `until`, divided by it; the first value where that is 0: an update may take less than a millisecond."""
        return self.area(until) / until if until else self.y[0]

    def best(self) -> float:
        """The best score."""
        return min(self.y) if self.less_is_better else max(self.y)

    def reaches(self, score: float) -> float | None:
        """The x of the first evaluation that is at least as good as `score`, or None."""
        reached = operator.le if self.less_is_better else operator.ge
        return next((x for x, y in zip(self.x, self.y, strict=True) if reached(y, score)), None)


def curve(lines: Sequence[Mapping[str, Any]], score: str, axis: str) -> Curve:
    """The curve of `score` (for instance `bleu`) over `axis` (a key of `AXES`) from lines of a `metrics.jsonl` that all have both."""
    x = tuple(float(line[AXES[axis]]) for line in lines)
    return Curve(x, tuple(float(line[f"valid/{score}"]) for line in lines), score in LESS_IS_BETTER)


def unrecorded(metrics: Sequence[Mapping[str, Any]], score: str, evaluated: Sequence[int]) -> list[int]:
    """Those of the `evaluated` updates whose `score` is not in the metrics, because lines were removed: without them, areas are wrong."""
    return sorted(set(evaluated) - {line["step"] for line in metrics if f"valid/{score}" in line})


def summary(metrics: Sequence[Mapping[str, Any]], score: str) -> dict[str, dict[str, float]]:
    """For result.json: by axis, the `area` up to the end of the run, `until` (the end), and their quotient `mean`.

    Without an evaluation there is none; an axis that an earlier version did not record is left out.
    """
    lines = [line for line in metrics if f"valid/{score}" in line]
    found = {axis: curve(lines, score, axis) for axis in AXES if lines and all(AXES[axis] in line for line in lines)}
    return {
        axis: {"area": each.area(until := each.x[-1]), "until": until, "mean": each.mean(until)}
        for axis, each in found.items()
    }
