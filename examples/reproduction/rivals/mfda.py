"""Manifold Fisher discriminant analysis (MFDA; Soleymani Baghshah, Bagheri Shouraki 2009)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.neighbors import NearestNeighbors

from seraph_cvx.numerics.psd_cone import symmetrize
from seraph_cvx.paper import differences

from .rival import Rival, moment, principal_directions


class MFDA(Rival):
    """Separate dissimilar pairs while each point stays where its neighbors put it (MFDA).

    max_W tr[(W'B W)^{-1} W'S_D W],  B = S_S + alpha*E,  E = X'(I - M)'(I - M)X / n;  A = WW'

    S_D and S_S are the means of vv', v = x_i - x_j, over the dissimilar and the similar pairs, M
    the weights of locally linear embedding (LLE). The maximum is at the leading eigenvectors of
    S_D w = ratio * B w, scaled to W'BW = I.

    The publication could not be consulted. Chosen here: the criterion is the ratio trace, whose
    optimum is the one eigendecomposition that Section 5.2 of the SERAPH paper speaks of; the
    scatters are means, so that alpha does not depend on the number of labels; B has
    `ridge` * tr(B)/r added to its diagonal, r the rank of the points, in whose span all is done.
    The defaults are round numbers near the best nearest-neighbor error over ten samplings of each
    of the tasks of Table 1, where the error hardly depends on them.

    Parameters
    ----------
    n_neighbors : int, default=5
        Of LLE; at most n - 1 are used.
    structure_weight : float, default=1.0
        alpha >= 0.
    ridge : float, default=0.1
        At least 0; without it B is singular where few points are labeled and LLE is exact.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> A = MFDA().fit(X, [0, 0, 1, 1, -1, -1]).metric_
    >>> bool(A[0, 0] > A[1, 1])
    True
    """

    def __init__(self, n_neighbors=5, structure_weight=1.0, ridge=0.1):
        self.n_neighbors = n_neighbors
        self.structure_weight = structure_weight
        self.ridge = ridge

    def _learn(self, pairs, y):
        V = principal_directions(pairs.points)
        Z = (pairs.points - pairs.points.mean(axis=0)) @ V
        between, within = _scatter(Z, pairs.dissimilar), _scatter(Z, pairs.similar)
        if not np.trace(between) > 0.0:
            raise ValueError("MFDA needs a dissimilar pair of two distinct points.")
        residuals = Z - reconstruction_weights(Z, self.n_neighbors) @ Z
        within = within + self.structure_weight * residuals.T @ residuals / len(Z)
        within += self.ridge * np.trace(within) / len(within) * np.eye(len(within))
        spread = np.linalg.eigvalsh(within)
        if not spread[0] > 1e-14 * spread[-1]:
            raise ValueError("MFDA's B is singular: set ridge and structure_weight above 0.")
        ratios, W = eigh(between, within)
        kept = ratios > 1e-10 * ratios[-1]  # at most the rank of S_D
        W = V @ W[:, kept][:, ::-1]
        return symmetrize(W @ W.T)


def _scatter(points, rows):
    """The mean of (x_i - x_j)(x_i - x_j)' over the rows (i, j); 0 if there are none."""
    return moment(differences(points, rows)) / max(1, len(rows))


def reconstruction_weights(points, n_neighbors=5):
    """The weights M that reconstruct each point from its neighbors best (Roweis and Saul 2000).

    They minimize sum_i ||x_i - sum_j M_ij x_j||^2, where each row sums to 1, with weights on the
    nearest neighbors only; local problems are regularized by 1e-3 of the Gram matrix's trace.
    """
    k = min(n_neighbors, len(points) - 1)
    near = NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False)
    around = points[near] - points[:, None]
    gram = around @ around.transpose(0, 2, 1)
    traces = np.trace(gram, axis1=1, axis2=2)
    lift = 1e-3 * np.where(traces > 0.0, traces, 1.0)
    solved = np.linalg.solve(gram + lift[:, None, None] * np.eye(k), np.ones((len(points), k, 1)))
    M = np.zeros((len(points), len(points)))
    np.put_along_axis(M, near, solved[:, :, 0] / solved.sum(axis=1), axis=1)
    return M
