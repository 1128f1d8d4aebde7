"""The Euclidean distance: the rival that learns nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.pair_set import PairSet
from .rival import Rival


class Euclidean(Rival):
    """Measure by the Euclidean distance, which learns nothing.

    A = I: d(x, x') = ||x - x'||, whatever the labels say.

    The supervision is checked, as every rival checks it, and not used.

    Parameters
    ----------
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m. All features are equally
        wide, so which ones a smaller number keeps means nothing.

    Examples
    --------
    >>> model = Euclidean().fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
    >>> model.pair_distance([[[0.0, 0.0], [3.0, 4.0]]])
    array([5.])
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        self._keep_metric(np.eye(pairs.n_features))
        return []
