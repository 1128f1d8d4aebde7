"""Global distance metric learning (GDM; Xing, Ng, Jordan and Russell 2002)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from seraph_cvx.numerics.psd_cone import symmetrize
from seraph_cvx.paper import differences

from .rival import Rival, moment, quadratic_forms, span_basis, state_squared_distances


class GDM(Rival):
    """Keep dissimilar points far apart while similar ones stay near (GDM).

    max_{A PSD} sum_D ||x_i - x_j||_A   s.t.   sum_S ||x_i - x_j||_A^2 <= 1

    The publication leaves open what to do where this is unbounded (usual with fewer labeled points
    than features). Here a small multiple of the identity joins the constraint, <C, A> <= 1 with
    C = sum_S vv' + ridge tr(.)/m I; directions in which no labeled points differ get distance 0.
    The ridge is our choice, as is the solver. Agreement with the authors' program is unverified.

    Parameters
    ----------
    ridge : float, default=1e-3
        0 is the publication's problem.
    tol : float, default=5e-7
        Relative duality gap at which to stop.
    max_iter : int, default=10000

    Attributes
    ----------
    objective_ : float
        sum_D ||x_i - x_j||_A.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = GDM().fit(X, [0, 0, 1, 1])
    >>> model.transform(X)[:, 0].round(1)
    array([-0.1, -0.1,  8.8,  8.9])
    """

    def __init__(self, ridge=1e-3, tol=5e-7, max_iter=10_000):
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, pairs, y):
        D, C = _terms(pairs, self.ridge)
        Q = span_basis(pairs.points[np.unique(pairs.labeled)])
        eigenvalues, vectors = np.linalg.eigh(symmetrize(Q.T @ C @ Q))
        if eigenvalues[0] <= 1e-14 * eigenvalues[-1]:
            raise ValueError(
                "GDM may be unbounded: the similar pairs do not span what the labeled points span. "
                "Use ridge > 0, or label more points."
            )
        T = Q @ (vectors / np.sqrt(eigenvalues))  # T'CT = I: <C, TBT'> = tr B
        F, self.n_iter_ = _ascend(D @ T, self.tol, self.max_iter)
        self._warn_if(self.n_iter_ == self.max_iter)
        A = symmetrize(T @ F @ F.T @ T.T)
        A /= np.vdot(C, A)
        self.objective_ = float(np.sum(np.sqrt(quadratic_forms(A, D))))
        return A


def _terms(pairs, ridge):
    """The differences of the dissimilar pairs of distinct points, and the matrix C."""
    S, D = (differences(pairs.points, rows) for rows in (pairs.similar, pairs.dissimilar))
    if not np.any(S) or not np.any(D):
        raise ValueError("GDM needs a similar and a dissimilar pair of distinct points.")
    m = S.shape[1]
    return D[np.any(D != 0.0, axis=1)], moment(S) + ridge * np.sum(S**2) / m * np.eye(m)


def state(pairs, ridge=1e-3) -> cp.Problem:
    """State GDM in CVXPY: max sum_D sqrt(v'Av)  s.t.  <C, A> <= 1, A PSD."""
    D, C = _terms(pairs, ridge)
    A = cp.Variable(C.shape, PSD=True, name="A")
    goal = cp.sum(cp.sqrt(state_squared_distances(A, D)))
    return cp.Problem(cp.Maximize(goal), [cp.sum(cp.multiply(C, A)) <= 1])


def _ascend(W, tol, max_iter):
    """Maximize g(F) = sum_k ||F'w_k|| over ||F||_F = 1: the factor F, and the steps it took.

    A convex function over a ball, so F <- GF / ||GF|| with G = sum_k w_k w_k' / (2 ||F'w_k||)
    ascends without a step size (Journee, Nesterov, Richtarik and Sepulchre 2010). No metric has a
    larger value than sqrt(2 g lambda_max(G)), derived here from sqrt(d) <= (l + d / l) / 2.
    """
    F = np.eye(W.shape[1]) / np.sqrt(W.shape[1])
    for step in range(max_iter):
        WF = W @ F
        lengths = np.linalg.norm(WF, axis=1)
        if step % 10 == 0:  # an eigendecomposition each
            value, largest = np.sum(lengths), np.linalg.eigvalsh(moment(W, 0.5 / lengths))[-1]
            if np.sqrt(2.0 * value * largest) <= (1.0 + tol) * value:
                return F, step
        F = (W / lengths[:, None]).T @ WF
        F /= np.linalg.norm(F)
    return F, max_iter
