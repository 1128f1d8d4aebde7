"""Neighborhood components analysis (NCA; Goldberger et al. 2004), by scikit-learn."""

from __future__ import annotations

from sklearn.neighbors import NeighborhoodComponentsAnalysis

from seraph_cvx.numerics.psd_cone import symmetrize

from .rival import Rival, known_classes


class NCA(Rival):
    """Maximize the expected accuracy of a stochastic nearest-neighbor rule (NCA).

    max_L sum_i p_i, p_i = sum_{j: y_j = y_i} e^{-||L(x_i - x_j)||^2} / sum_{j != i} of the same,

    over the points of known class. The objective is not concave: A = L'L is a local optimum.

    Examples
    --------
    >>> X = [[0.0, 0.1], [0.1, 2.3], [2.0, 0.2], [2.1, 2.0], [0.2, 1.2], [1.9, 1.0]]
    >>> A = NCA().fit(X, [0, 0, 1, 1, -1, -1]).metric_
    >>> bool(A[0, 0] > A[1, 1])
    True
    """

    def __init__(self, max_iter=200, tol=1e-5, random_state=None):
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn(self, pairs, y):
        known, classes = known_classes(self, y)
        nca = NeighborhoodComponentsAnalysis(
            max_iter=self.max_iter, tol=self.tol, random_state=self.random_state
        ).fit(pairs.points[known], classes)
        self.n_iter_ = int(nca.n_iter_)
        self._warn_if(self.n_iter_ > self.max_iter)  # scikit-learn counts the start as the first
        return symmetrize(nca.components_.T @ nca.components_)
