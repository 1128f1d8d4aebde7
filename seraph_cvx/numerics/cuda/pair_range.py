"""Which pairs a kernel sums over, and their loss."""

from __future__ import annotations

from typing import NamedTuple


class PairRange(NamedTuple):
    """The pairs i < j of the first n points, but for those of the very first ones."""

    n: int
    first: int  # pairs with j < first do not count
    kind: str  # of the loss in `posterior.py`: "logistic", "sharpened" or "entropy"
    sharpness: float
    weight: float = 1.0  # what the loss of each pair is multiplied by


class BoundedPairs(NamedTuple):
    """The same pairs, and which terms of a certificate are summed over them.

    `kind` is "no labels", "soft labels" (`pair_bounds.UnlabeledTerms`) or "labels alone"
    (`label_bounds.LabelTerms`). The numbers: what is subtracted from distances for lower and for
    upper scores, the sharpness, the largest score, and what upper and lower bounds on labels are
    multiplied by.
    """

    n: int
    first: int
    kind: str
    numbers: tuple[float, float, float, float, float, float]
