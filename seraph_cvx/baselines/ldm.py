"""Local distance metric learning (LDM): bound optimization of the metric's eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from ..numerics.checks import FloatArray, check_number, counted
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from .rival import Rival, principal_directions

LARGEST_RATIO = 1e6
"""Ratios b_k/a_k are cut off at this: the step is then shorter than the best, but still ascends."""

STRETCH = 1.5
"""After each step the next one is tried longer by this factor."""


class LDM(Rival):
    """Weight the principal directions so that points have neighbors of their own class (LDM).

    max_{g >= 0} L(g) = sum_i log(sum_{S_i} f_ij / sum_{S_i u D_i} f_ij);  A = V diag(g) V'.

    Yang, Jin, Sukthankar and Liu, "An efficient algorithm for local distance metric learning",
    AAAI 2006. S_i and D_i are the points said to be similar and dissimilar to x_i and
    f_ij = exp(-||x_i - x_j||_A^2), so that near pairs count most: L is the log-likelihood that each
    point finds its like among its neighbors. The columns of V are the principal directions of all
    points, labeled or not; only the eigenvalues g are learned. The sum is over points that have
    both kinds of partners, of which there must be one; no other point's term depends on g.

    With w_ijk = (v_k'(x_i - x_j))^2, local weights p_ij = f_ij / sum_{S_i} f and
    q_ij = f_ij / sum_{S_i u D_i} f at the present g, a_k = sum p_ij w_ijk, b_k = sum q_ij w_ijk and
    c = max_ij sum_k w_ijk, convexity of log-sum-exp and of exp gives the bound

        L(g + d) - L(g) >= sum_k [-a_k d_k + (b_k / c)(1 - e^{-c d_k})],

    whose maximum is d_k = log(b_k / a_k) / c, cut where g_k + d_k would be negative. New weights,
    new eigenvalues, in turns: L never falls. Steps longer than d are tried and kept while L rises.

    Only the abstract of the publication could be consulted. The objective, the directions and the
    kind of algorithm are its own; the bound above was derived here and may not be its bound.
    Chosen: the directions are those of the centered points; the kernel has no width but A itself,
    and A starts at the identity over the mean squared distance of the pairs in L; longer steps;
    stopping at `tol`. L is not concave: what is found is a local maximum. Where every point can be
    nearest to its like there is none (L nears 0 as g grows), and `tol` decides how far to go.

    Parameters
    ----------
    principal_components : int or float, optional
        How many principal directions A may use, or (below 1) how much of the variance they must
        explain; by default all that the points span.
    tol : float, default=1e-3
        Stop when no |b_k - a_k|, the derivative of L by g_k, is above `tol` times the largest it
        could be, c times the number of points in the sum; at g_k = 0 only an increase counts.
    max_iter : int, default=1000
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        See :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    axes_ : (m, r) array
        The principal directions V.
    eigenvalues_ : (r,) array
        Their weights g.
    history_ : list of float
        L at each iteration's local weights.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> model = LDM().fit(X, [0, 0, 1, 1, -1, -1])
    >>> near, far = model.pair_distance([[X[0], X[1]], [X[0], X[2]]])
    >>> bool(near < far)
    True
    """

    def __init__(
        self,
        principal_components: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_components: int | None = None,
    ) -> None:
        self.principal_components = principal_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_components = n_components

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        tol = check_number(self.tol, "tol", 0.0, strict=True)
        self.axes_ = principal_directions(pairs.points, self.principal_components)
        neighbors = Neighborhoods.of(pairs, self.axes_)
        most = int(check_number(self.max_iter, "max_iter", 1.0))
        self.eigenvalues_, self.history_, reached = _ascend(neighbors, tol, most)
        self.n_iter_ = len(self.history_)
        self._keep_metric(symmetrize((self.axes_ * self.eigenvalues_) @ self.axes_.T))
        if reached <= tol:
            return []
        return [
            ConvergenceWarning(
                f"LDM stopped after {counted(self.n_iter_, 'iteration')} with a derivative of "
                f"{reached:.2g} where {tol:.2g} was asked for: raise max_iter or tol."
            )
        ]


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The points in the sum of L and their partners, in principal coordinates."""

    centers: FloatArray  # the x_i that have both similar and dissimilar partners, (h, r)
    points: FloatArray  # all points that are in some pair, (N, r)
    similar: NDArray[np.bool_]  # which points are in S_i, (h, N)
    labeled: NDArray[np.bool_]  # which are in S_i u D_i

    @classmethod
    def of(cls, pairs: PairSet, directions: FloatArray) -> Neighborhoods:
        """Collect S_i and D_i of every point that has both; raise an error if none has."""
        used, position = np.unique(pairs.labeled, return_inverse=True)
        first, second = position.reshape(-1, 2).T
        kind = np.zeros((len(used), len(used)), dtype=np.int8)
        kind[first, second] = kind[second, first] = np.repeat(
            [1, -1], [len(pairs.similar), len(pairs.dissimilar)]
        )
        centers = (kind == 1).any(axis=1) & (kind == -1).any(axis=1)
        points = (pairs.points[used] - pairs.points.mean(axis=0)) @ directions
        neighbors = cls(points[centers], points, kind[centers] == 1, kind[centers] != 0)
        if not centers.any() or not neighbors.distances(np.ones(directions.shape[1])).any():
            raise ValueError(
                f"LDM compares the similar and the dissimilar partners of a point, but among "
                f"{len(pairs.similar)} similar and {len(pairs.dissimilar)} dissimilar pairs no "
                "point has both at some distance: label two distinct points of one class and "
                "one of another."
            )
        return neighbors

    def distances(self, eigenvalues: FloatArray) -> FloatArray:
        """The squared distances ||x_i - x_j||_A^2 of labeled pairs, 0 for all others."""
        root = np.sqrt(eigenvalues)
        squares = cdist(self.centers * root, self.points * root, "sqeuclidean")
        return np.asarray(np.where(self.labeled, squares, 0.0))

    def likelihood(self, eigenvalues: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Compute the likelihood L(g) with a and b, where b - a is its gradient."""
        closeness = np.where(self.labeled, -self.distances(eigenvalues), -np.inf)
        among_similar = np.where(self.similar, closeness, -np.inf)
        all_mass = logsumexp(closeness, axis=1, keepdims=True)
        similar_mass = logsumexp(among_similar, axis=1, keepdims=True)
        return (
            float(np.sum(similar_mass - all_mass)),
            self._spread(np.exp(among_similar - similar_mass)),
            self._spread(np.exp(closeness - all_mass)),
        )

    def _spread(self, weights: FloatArray) -> FloatArray:
        """The weighted sum of w_ijk over the pairs, for each direction k."""
        squares = weights.sum(axis=1) @ self.centers**2 + weights.sum(axis=0) @ self.points**2
        crossed = np.sum(self.centers * (weights @ self.points), axis=0)
        return np.asarray(np.maximum(squares - 2.0 * crossed, 0.0))


def _ascend(
    neighbors: Neighborhoods, tol: float, max_iter: int
) -> tuple[FloatArray, list[float], float]:
    """Ascend L: the eigenvalues, L at each iteration, and the last relative derivative."""
    squares = neighbors.distances(np.ones(neighbors.points.shape[1]))
    c = float(squares.max())
    g = np.full(neighbors.points.shape[1], np.count_nonzero(neighbors.labeled) / squares.sum())
    value, a, b = neighbors.likelihood(g)
    history, stretch, tiny, cut = [value], 1.0, np.finfo(np.float64).tiny, np.log(LARGEST_RATIO)
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
        stretch *= STRETCH
