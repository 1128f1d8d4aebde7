"""Local distance metric learning (LDM; Yang, Jin, Sukthankar and Liu 2006)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from seraph_cvx.numerics.psd_cone import symmetrize

from .rival import Rival, principal_directions


class LDM(Rival):
    """Weight the principal directions so that points have neighbors of their own class (LDM).

    max_{g >= 0} L(g) = sum_i log(sum_{S_i} f_ij / sum_{S_i u D_i} f_ij);  A = V diag(g) V'

    S_i and D_i are the points similar and dissimilar to x_i and f_ij = exp(-||x_i - x_j||_A^2), so
    that near pairs count most. The columns of V are the principal directions of all points; only
    the eigenvalues g are learned. The sum is over points that have both kinds of partners.

    With w_ijk = (v_k'(x_i - x_j))^2, weights p_ij = f_ij / sum_{S_i} f and q_ij = f_ij /
    sum_{S_i u D_i} f at the present g, a_k = sum p_ij w_ijk, b_k = sum q_ij w_ijk and
    c = max_ij sum_k w_ijk, convexity of log-sum-exp and of exp gives

        L(g + d) - L(g) >= sum_k [-a_k d_k + (b_k / c)(1 - e^{-c d_k})],

    whose maximum is d_k = log(b_k / a_k) / c, cut where g_k + d_k would be negative. L never falls;
    longer steps are tried and kept while it rises. Only the abstract of the publication could be
    consulted: the bound was derived here and may not be its bound, and the start (the identity over
    the mean squared distance) and the stopping rule are our choice. L is not concave: what is found
    is a local maximum. Where every point can be nearest to its like, `tol` decides how far to go.

    Parameters
    ----------
    tol : float, default=1e-3
        Stop when no derivative |b_k - a_k| is above `tol` times the largest it could be, c times
        the number of points in the sum.
    max_iter : int, default=1000

    Attributes
    ----------
    history_ : list of float
        L at each iteration.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> A = LDM().fit(X, [0, 0, 1, 1, -1, -1]).metric_
    >>> bool(A[0, 0] > A[1, 1])
    True
    """

    def __init__(self, tol=1e-3, max_iter=1000):
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, pairs, y):
        V = principal_directions(pairs.points)
        neighbors = Neighborhoods(pairs, V)
        g, self.history_, reached = _ascend(neighbors, self.tol, self.max_iter)
        self.n_iter_ = len(self.history_)
        self._warn_if(reached > self.tol)
        return symmetrize((V * g) @ V.T)


class Neighborhoods:
    """The points in the sum of L and their partners, in principal coordinates."""

    def __init__(self, pairs, directions):
        used, position = np.unique(pairs.labeled, return_inverse=True)
        first, second = position.reshape(-1, 2).T
        kind = np.zeros((len(used), len(used)), dtype=np.int8)
        kind[first, second] = kind[second, first] = np.repeat(
            [1, -1], [len(pairs.similar), len(pairs.dissimilar)]
        )
        in_sum = (kind == 1).any(axis=1) & (kind == -1).any(axis=1)
        self.points = (pairs.points[used] - pairs.points.mean(axis=0)) @ directions
        self.centers = self.points[in_sum]  # the x_i that have both kinds of partners
        self.similar, self.labeled = kind[in_sum] == 1, kind[in_sum] != 0
        self.rank = directions.shape[1]
        if not in_sum.any() or not self.distances(np.ones(self.rank)).any():
            raise ValueError(
                "LDM compares the similar and the dissimilar partners of a point, but no point has "
                "both at some distance: label two distinct points of one class and one of another."
            )

    def distances(self, g):
        """The squared distances ||x_i - x_j||_A^2 of labeled pairs, 0 for all others."""
        root = np.sqrt(g)
        squares = cdist(self.centers * root, self.points * root, "sqeuclidean")
        return np.where(self.labeled, squares, 0.0)

    def likelihood(self, g):
        """The likelihood L(g) with a and b, where b - a is its gradient."""
        closeness = np.where(self.labeled, -self.distances(g), -np.inf)
        among_similar = np.where(self.similar, closeness, -np.inf)
        all_mass = logsumexp(closeness, axis=1, keepdims=True)
        similar_mass = logsumexp(among_similar, axis=1, keepdims=True)
        a = self._spread(np.exp(among_similar - similar_mass))
        return float(np.sum(similar_mass - all_mass)), a, self._spread(np.exp(closeness - all_mass))

    def _spread(self, weights):
        """The weighted sum of w_ijk over the pairs, for each direction k."""
        squares = weights.sum(axis=1) @ self.centers**2 + weights.sum(axis=0) @ self.points**2
        crossed = np.sum(self.centers * (weights @ self.points), axis=0)
        return np.maximum(squares - 2.0 * crossed, 0.0)


def _ascend(neighbors, tol, max_iter):
    """Ascend L: the eigenvalues, L at each iteration, and the last relative derivative."""
    squares = neighbors.distances(np.ones(neighbors.rank))
    c, tiny, cut = float(squares.max()), np.finfo(np.float64).tiny, np.log(1e6)
    g = np.full(neighbors.rank, np.count_nonzero(neighbors.labeled) / squares.sum())
    value, a, b = neighbors.likelihood(g)
    history, stretch = [value], 1.0
    while True:
        slope = np.where((g > 0.0) | (b > a), b - a, 0.0)
        reached = float(np.max(np.abs(slope))) / (c * len(neighbors.centers))
        if reached <= tol or len(history) >= max_iter:
            return g, history, reached
        d = np.clip(np.log(np.maximum(b, tiny) / np.maximum(a, tiny)), -cut, cut) / c
        trial = np.maximum(0.0, g + stretch * d)
        while (found := neighbors.likelihood(trial))[0] < value and stretch > 1.0:
            stretch = max(1.0, stretch / 2.0)
            trial = np.maximum(0.0, g + stretch * d)
        if found[0] < value:  # by rounding alone: this is as far as L can be told to rise
            return g, history, reached
        g, (value, a, b) = trial, found
        history.append(value)
        stretch *= 1.5
