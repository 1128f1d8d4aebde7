"""Manifold Fisher discriminant analysis (MFDA): pairwise scatters and locally linear structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.neighbors import NearestNeighbors

from ..numerics.checks import FloatArray, IntArray, check_number, check_points
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from ..paper import differences
from .rival import Rival, moment, principal_directions

LLE_REGULARIZATION = 1e-3
"""The ridge of each local Gram matrix, as a fraction of its trace: the usual one."""

POSITIVE = 1e-10
"""A generalized eigenvalue above this fraction of the largest counts as positive."""


class MFDA(Rival):
    """Separate dissimilar pairs while each point stays where its neighbors put it (MFDA).

    max_W tr[(W'B W)^{-1} W'S_D W],  B = S_S + alpha*E,  E = X'(I - M)'(I - M)X / n;  A = WW'.

    Soleymani Baghshah and Bagheri Shouraki, "Semi-supervised metric learning using pairwise
    constraints", IJCAI 2009: dissimilar pairs far, similar pairs near, and each point, labeled or
    not, where its neighbors put it. S_D and S_S are the means of vv', v = x_i - x_j, over the
    dissimilar and the similar pairs, M the weights of locally linear embedding (LLE). The maximum
    is at the leading eigenvectors of S_D w = ratio * B w, scaled to W'BW = I.

    The publication could not be consulted. Chosen here: the criterion is the ratio trace, whose
    optimum is the one eigendecomposition that Section 5.2 of the SERAPH paper speaks of (the
    publication, as far as known, maximizes tr(W'S_D W) / tr(W'BW) over W'W = I by a search); the
    scatters are means, so that alpha does not depend on the number of labels; B has
    `ridge` * tr(B)/r added to its diagonal, r the rank of the points, in whose span all is done.
    At least one dissimilar pair is needed. The defaults are round numbers near the best
    nearest-neighbor error over ten samplings of each of the tasks of Table 1, where the error
    hardly depends on them.

    Parameters
    ----------
    n_neighbors : int, default=5
        Of LLE; at most n - 1 are used.
    structure_weight : float, default=1.0
        alpha >= 0.
    ridge : float, default=0.1
        At least 0; without it B is singular where few points are labeled and LLE is exact.
    n_directions : int, optional
        Columns of W, the rank of A; by default as many as have a positive ratio, which is at most
        the rank of S_D.
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        See :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    directions_ : (m, n_directions) array
        W, the direction of the largest ratio first.
    ratios_ : (n_directions,) array
        The generalized eigenvalues.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> model = MFDA(n_directions=1).fit(X, [0, 0, 1, 1, -1, -1])
    >>> near, far = model.pair_distance([[X[0], X[1]], [X[0], X[2]]])
    >>> bool(near < far)
    True
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        structure_weight: float = 1.0,
        ridge: float = 0.1,
        n_directions: int | None = None,
        n_components: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.structure_weight = structure_weight
        self.ridge = ridge
        self.n_directions = n_directions
        self.n_components = n_components

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        directions = principal_directions(pairs.points)
        between, within = self._scatters(pairs, directions)
        ratios, W = eigh(between, within)
        kept, rank = self.n_directions, len(ratios)
        if kept is None:
            kept = int(np.sum(ratios > POSITIVE * ratios[-1]))
        elif not 1 <= kept <= rank:
            raise ValueError(
                f"n_directions={kept} must be between 1 and {rank}, the rank of the points."
            )
        self.ratios_ = ratios[::-1][:kept]
        self.directions_ = directions @ W[:, ::-1][:, :kept]
        self._keep_metric(symmetrize(self.directions_ @ self.directions_.T))
        return []

    def _scatters(self, pairs: PairSet, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scatters S_D and the regularized B, in principal coordinates."""
        alpha = check_number(self.structure_weight, "structure_weight", 0.0)
        ridge = check_number(self.ridge, "ridge", 0.0)
        Z = (pairs.points - pairs.points.mean(axis=0)) @ directions
        between = pairwise_scatter(Z, pairs.dissimilar)
        if not np.trace(between) > 0.0:
            raise ValueError(
                f"The {len(pairs.dissimilar)} dissimilar pairs have no extent, so no direction "
                "tells them apart: give at least one dissimilar pair of two distinct points."
            )
        residuals = Z - reconstruction_weights(Z, self.n_neighbors) @ Z
        within = pairwise_scatter(Z, pairs.similar) + alpha * residuals.T @ residuals / len(Z)
        within += ridge * np.trace(within) / len(within) * np.eye(len(within))
        spread = np.linalg.eigvalsh(within)
        if not spread[0] > 1e-14 * spread[-1]:
            raise ValueError(
                f"With {len(pairs.similar)} similar pairs, structure_weight={alpha:g} and "
                f"ridge={ridge:g} the scatter B is singular, so the criterion has no maximum: "
                "set ridge and structure_weight above 0."
            )
        return between, within


def pairwise_scatter(points: FloatArray, rows: IntArray) -> FloatArray:
    """The mean of (x_i - x_j)(x_i - x_j)' over the rows (i, j); 0 if there are none."""
    return moment(differences(points, rows)) / max(1, len(rows))


def reconstruction_weights(X: ArrayLike, n_neighbors: int = 5) -> FloatArray:
    """The weights M that reconstruct each point from its neighbors best (Roweis and Saul 2000).

    They minimize sum_i ||x_i - sum_j M_ij x_j||^2, where each row sums to 1, with weights on the
    nearest neighbors only; local problems are regularized by 1e-3 of the Gram matrix's trace.
    """
    points = check_points(X)
    if int(n_neighbors) != n_neighbors or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors} must be an integer of at least 1.")
    k = min(int(n_neighbors), len(points) - 1)
    near = NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False)
    around = points[near] - points[:, None]
    gram = around @ around.transpose(0, 2, 1)
    traces = np.trace(gram, axis1=1, axis2=2)
    lift = LLE_REGULARIZATION * np.where(traces > 0.0, traces, 1.0)
    solved = np.linalg.solve(gram + lift[:, None, None] * np.eye(k), np.ones((len(points), k, 1)))
    M = np.zeros((len(points), len(points)))
    np.put_along_axis(M, near, solved[:, :, 0] / solved.sum(axis=1), axis=1)
    return M
