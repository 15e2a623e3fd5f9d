"""Scores of a classifier, as GLUE reports them."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Integer

Labels = Integer[np.ndarray, " examples"]


def accuracy(predicted: Labels, labels: Labels) -> float:
    """The share of examples whose predicted label is right."""
    return float(np.mean(predicted == labels))


def f1(predicted: Labels, labels: Labels) -> float:
    """The harmonic mean of precision and recall of label 1; 0 if no prediction of label 1 is right."""
    right = int(np.sum((predicted == 1) & (labels == 1)))
    return 2 * right / max(int(np.sum(predicted == 1)) + int(np.sum(labels == 1)), 1)


def matthews(predicted: Labels, labels: Labels) -> float:
    """Matthews' correlation for two labels, in [-1, 1]; 0 if either side has only one label."""
    count = len(labels)
    given, true, both = (int(np.sum(side == 1)) for side in (predicted, labels, predicted * labels))
    product = given * (count - given) * true * (count - true)  # Python integers, which do not overflow
    return (both * count - given * true) / math.sqrt(product) if product else 0.0


SCORES = {"accuracy": accuracy, "f1": f1, "matthews": matthews}
