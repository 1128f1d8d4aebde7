"""Which pairs a kernel sums over, and their loss."""

from __future__ import annotations

from typing import NamedTuple


class PairRange(NamedTuple):
    """The pairs i < j of the first n points, but for those of the very first ones.

    Attributes
    ----------
    n : int
    first : int
        Pairs with j < first do not count.
    kind : "logistic", "sharpened" or "entropy"
        The loss; see `pair_losses.py`.
    sharpness : float
    share : (int, int)
        Which share of the pairs, and of how many: (k, p) has the rows of tiles k, k + p, ...
    weight : float
        What the loss of each pair is multiplied by.
    """

    n: int
    first: int
    kind: str
    sharpness: float
    share: tuple[int, int] = (0, 1)
    weight: float = 1.0


class BoundedPairs(NamedTuple):
    """The same pairs, and which terms of a certificate are summed over them.

    Attributes
    ----------
    n, first : int
        See `PairRange`.
    kind : "no labels", "soft labels" or "labels alone"
        See `certificate.pair_bounds.UnlabeledTerms` and `label_bounds.LabelTerms`.
    numbers : tuple of float
        What is subtracted from distances for lower and for upper scores, the sharpness, the largest
        score, and what upper and lower bounds on labels are multiplied by.
    """

    n: int
    first: int
    kind: str
    numbers: tuple[float, float, float, float, float, float]
