"""The manifold term nu*X'LX (Appendix C.3), a part of R."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_number, check_points
from ..numerics.psd_cone import symmetrize


def manifold_term(X: ArrayLike, laplacian_weight: float = 1.0, n_neighbors: int = 7) -> FloatArray:
    """Sum the manifold term over a graph of nearest neighbors.

    nu*X'LX = nu/2 sum_ij w_ij (x_i - x_j)(x_i - x_j)', so that <X'LX, A> = 1/2 sum w d_A^2, with
    w_ij = exp(-||x_i - x_j||^2 / t), where t is the mean squared length of an edge.

    L = D - W is the Laplacian of the graph that joins each point to its nearest neighbors. The
    term is linear in A, so it only changes R of the M-step (11): every solver, statement and
    certificate takes it as it is (``MStepObjective(manifold_term=...)``).

    Parameters
    ----------
    X : (n, m) array_like
        All points, labeled or not.
    laplacian_weight : float
        The weight nu >= 0 of the term.
    n_neighbors : int
        Two points are joined if one is among the `n_neighbors` nearest of the other.

    Returns
    -------
    (m, m) array
        A PSD matrix. Appendix C.3 of the paper is not available; this is the usual form of manifold
        regularization and could not be compared with it.

    Examples
    --------
    >>> manifold_term([[0.0], [1.0], [9.0], [10.0]], n_neighbors=1)  # two edges of length 1
    array([[0.73575888]])
    """
    points = check_points(X)
    nu = check_number(laplacian_weight, "laplacian_weight", 0.0)
    m = points.shape[1]
    if nu == 0.0:
        return np.zeros((m, m))
    if int(n_neighbors) != n_neighbors or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors} must be an integer of at least 1.")
    from sklearn.neighbors import kneighbors_graph

    joined = kneighbors_graph(points, min(int(n_neighbors), len(points) - 1)).nonzero()
    i, j = np.unique(np.sort(np.column_stack(joined), axis=1), axis=0).T
    V = points[i] - points[j]
    squares = np.sum(np.square(V), axis=1)
    weights = np.exp(-squares / max(float(np.mean(squares)), np.finfo(np.float64).tiny))
    # nu/2 w v v' summed over edges: nothing cancels, so the sum is PSD
    V = V * np.sqrt(nu * weights)[:, None]
    return symmetrize(V.T @ V)
