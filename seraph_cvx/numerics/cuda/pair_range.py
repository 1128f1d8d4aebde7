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
    """

    n: int
    first: int
    kind: str
    sharpness: float
    share: tuple[int, int] = (0, 1)
