"""Two lists of labels for one test set: which are right, and McNemar's test of the difference."""

from __future__ import annotations

import math
from collections.abc import Sequence

from one_layer.system.errors import UserError
from one_layer.tasks.paired import FEWEST, Paired


def labels(references: Sequence[str], systems: tuple[Sequence[str], Sequence[str]]) -> Paired:
    """The accuracy of two lists of labels; a line has 1 where its label is right, else 0. The test is McNemar's, which is exact.

    Raises: UserError for lists of unequal lengths, or without lines.
    """
    if not references or not all(len(lines) == len(references) for lines in systems):
        raise UserError(
            f"there are {len(references):,} references for {len(systems[0]):,} and {len(systems[1]):,} labels"
        )
    one, other = ([float(a == b) for a, b in zip(lines, references, strict=True)] for lines in systems)
    totals = sum(one) / len(references), sum(other) / len(references)
    paired = Paired("accuracy", totals, list(zip(one, other, strict=True)))
    first, second, _ = paired.counts
    if first + second < FEWEST:
        return paired
    return paired._replace(p=sign_test(first, second), test="McNemar's test, exact")


def sign_test(first: int, second: int) -> float:
    """The probability, for a fair coin, of counts at least as unequal as these two (McNemar 1947, in its exact form)."""
    tosses = first + second
    tail = sum(math.comb(tosses, each) for each in range(min(first, second) + 1))
    return min(1.0, 2 * tail / 2**tosses)
