"""The Euclidean distance: the rival that learns nothing."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..mahalanobis import MahalanobisTransformer


class Euclidean(MahalanobisTransformer):
    """A = I: d(x, x') = ||x - x'||, whatever the labels say.

    Parameters
    ----------
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m. All axes are equally
        wide, so which ones a smaller number keeps means nothing.

    Examples
    --------
    >>> model = Euclidean().fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
    >>> model.pair_distance([[[0.0, 0.0], [3.0, 4.0]]])
    array([5.])
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
    ) -> Self:
        """Keep A = I; the supervision is checked, as every rival checks it, and not used."""
        pairs = self._take(X, y, similar, dissimilar)
        self._keep_metric(np.eye(pairs.n_features))
        return self
