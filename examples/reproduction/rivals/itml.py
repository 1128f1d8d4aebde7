"""Information-theoretic metric learning (ITML; Davis, Kulis, Jain, Sra and Dhillon 2007)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.spatial.distance import pdist

from seraph_cvx.numerics.psd_cone import symmetrize
from seraph_cvx.paper import differences

from .rival import Rival, descend, moment, quadratic_forms, span_basis, state_squared_distances


class ITML(Rival):
    """Keep bounds on distances with the metric nearest to the Euclidean one (ITML).

    min_{A, xi} D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0))
    s.t.  v'Av <= xi_k, xi0_k = u, for similar and v'Av >= xi_k, xi0_k = l, for dissimilar pairs,

    D_ld(A, B) = tr(AB^-1) - log det(AB^-1) - m. The best slack for a given A is max(v'Av, u) or
    min(v'Av, l), so A alone is left: a convex problem with a unique optimum, found by L-BFGS (the
    publication's cyclic projections reach the same). All labeled pairs of distinct points are
    constraints; the publication draws some at random. It takes the 5th and 95th percentile of the
    squared Euclidean distances for u and l, and chooses gamma by cross-validation; 1 is our
    default. Agreement with the authors' program is unverified.

    Parameters
    ----------
    gamma : float, default=1.0
        Larger keeps the bounds more strictly.
    bounds : (float, float), optional
        u and l.
    max_iter : int, default=1000

    Attributes
    ----------
    objective_ : float
        The two divergences together.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = ITML().fit(X, [0, 0, 1, 1])
    >>> model.transform(X)[:, 0].round(1) + 0.0
    array([0. , 0. , 3.6, 3.7])
    """

    def __init__(self, gamma=1.0, bounds=None, max_iter=1_000):
        self.gamma = gamma
        self.bounds = bounds
        self.max_iter = max_iter

    def _learn(self, pairs, y):
        V, signs, xi0 = _constraints(pairs, self.bounds)
        Q = span_basis(pairs.points[np.unique(pairs.labeled)])  # outside of it the best A is I
        W = V @ Q

        def value_and_gradient(F):
            A, log_det = F @ F.T, 2.0 * float(np.linalg.slogdet(F)[1])
            p = quadratic_forms(A, W)
            xi = np.where(signs > 0.0, np.maximum(p, xi0), np.minimum(p, xi0))
            if log_det == -np.inf or np.min(xi) <= 0.0:
                return np.inf, np.zeros_like(F)
            ratios = xi / xi0
            slack_cost = self.gamma * float(np.sum(ratios - np.log(ratios) - 1.0))
            slope = moment(W, self.gamma * (1.0 / xi0 - 1.0 / xi))
            value = float(np.trace(A)) - log_det - len(A) + slack_cost
            return value, 2.0 * (F + slope @ F - np.linalg.inv(F).T)

        F, self.n_iter_ = descend(value_and_gradient, np.eye(W.shape[1]), self.max_iter)
        self._warn_if(self.n_iter_ >= self.max_iter)
        self.objective_ = value_and_gradient(F)[0]
        B, m = F @ F.T, len(Q)
        if Q.shape[1] == m:
            return symmetrize(Q @ B @ Q.T)
        return symmetrize(np.eye(m) + Q @ (B - np.eye(len(B))) @ Q.T)


def _constraints(pairs, bounds):
    """The differences, signs (+1 similar, -1 dissimilar) and bounds xi0 of the constraints.

    Equal points are left out, of the percentiles too: u = 0 would ask for a divergence from 0.
    """
    V = differences(pairs.points, pairs.labeled)
    signs = np.repeat([1.0, -1.0], [len(pairs.similar), len(pairs.dissimilar)])
    distinct = np.any(V, axis=1)
    if not np.any(distinct):
        raise ValueError("Every labeled pair joins two equal points: label distinct points.")
    if bounds is None:
        squares = pdist(pairs.points, "sqeuclidean")
        bounds = np.percentile(squares[squares > 0.0], (5.0, 95.0))
    signs = signs[distinct]
    return V[distinct], signs, np.where(signs > 0.0, *bounds)


def state(pairs, gamma=1.0, bounds=None) -> cp.Problem:
    """State ITML in CVXPY, with both A and xi."""
    V, signs, xi0 = _constraints(pairs, bounds)
    m = V.shape[1]
    A, xi = cp.Variable((m, m), PSD=True, name="A"), cp.Variable(len(V), name="xi")
    ratios = cp.multiply(1.0 / xi0, xi)
    slack_cost = gamma * cp.sum(ratios - cp.log(ratios) - 1)
    too_far = cp.multiply(signs, state_squared_distances(A, V) - xi)
    return cp.Problem(cp.Minimize(cp.trace(A) - cp.log_det(A) - m + slack_cost), [too_far <= 0])
