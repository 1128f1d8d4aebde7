"""Global distance metric learning (GDM; Xing, Ng, Jordan and Russell 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import scaled_factor
from ..pairs.pair_set import PairSet
from .gdm_problem import GDMProblem, bound_from_lengths, state_gdm
from .rival import CertifiedRival, RivalSolution, check_limits

CHECK_EVERY = 10
"""Steps between two checks of the gap, which cost an eigendecomposition each."""


def solve_gdm(
    problem: GDMProblem, solver: str = "power", tol: float = 1e-6, max_iter: int = 10_000
) -> RivalSolution:
    """Solve a :class:`GDMProblem` by a power method, or by a conic solver.

    In whitened coordinates w = T'v, A = T FF' T' it is max_F sum_D ||F'w|| over ||F||_F = 1: a
    convex function over a ball, so F <- GF / ||GF||_F with G = sum_D w w' / (2 ||F'w||) ascends
    without a step size (the generalized power method of Journee, Nesterov, Richtarik and Sepulchre
    2010). The publication ascends the gradient and projects in turn instead.

    Parameters
    ----------
    problem : GDMProblem
    solver : "power" or the name of a CVXPY solver
    tol : float
        Relative gap at which the power method stops.
    max_iter : int
        The most iterations of the power method.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> solve_gdm(GDMProblem(pairs, ridge=0.0)).metric
    array([[0.25]])
    """
    check_limits(tol, max_iter)
    W = problem.dissimilar @ problem.whitening  # an error, with a remedy, where it is unbounded
    if solver == "power":
        F, steps = _ascend(W, tol, max_iter)
        L = problem.whitening @ F
        A = L @ L.T
    else:
        from .conic import solve_statement

        A, steps = solve_statement(state_gdm(problem), solver)
        L = scaled_factor(A)
    A = A / float(np.vdot(problem.similar_moment, A))
    return RivalSolution(
        metric=A,
        value=problem.value(A),
        proven_value=problem.value_from_below(L),
        bound=problem.upper_bound(A),
        solver=solver,
        iterations=steps,
        is_maximum=True,
    )


def _ascend(W: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Maximize sum_k ||F'w_k|| to half of `tol`: the factor F, and the steps it took.

    Half, because it is by the plain formula: the proof that follows finds a wider gap.
    """
    F = np.eye(W.shape[1]) / np.sqrt(W.shape[1])
    for step in range(max_iter):
        WF = W @ F
        lengths = np.linalg.norm(WF, axis=1)
        if step % CHECK_EVERY == 0:
            best = bound_from_lengths(W, lengths)
            if best <= (1.0 + tol / 2.0) * float(np.sum(lengths)):
                return F, step
        F = (W / lengths[:, None]).T @ WF
        F /= np.linalg.norm(F)
    return F, max_iter


class GDM(CertifiedRival):
    """Keep dissimilar points far apart while similar ones stay near (GDM).

    max_{A PSD} sum_D ||x_i - x_j||_A  s.t.  sum_S ||x_i - x_j||_A^2 <= 1, Xing et al. (2002).

    The publication leaves open what to do where this is unbounded (usual with fewer labeled points
    than features); here a small multiple of the identity joins the constraint, see
    :class:`GDMProblem`, and directions in which no labeled points differ get distance 0. The
    default ridge is this package's choice, as is the solver. Agreement with the authors' program,
    which must stop somewhere in those cases too, is unverified.

    Parameters
    ----------
    ridge : float, default=1e-3
        0 is the publication's problem, and an error where that is unbounded.
    solver : str, default="power"
        A certified first-order method, or the name of a CVXPY solver ("CLARABEL", "SCS", ...) for
        small data.
    tol : float, default=1e-6
        Relative duality gap to reach; a wider one raises a warning.
    max_iter : int, default=10000
    n_components : int, optional
        Rows of `components_`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        As for :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
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

    def __init__(
        self,
        ridge: float = 1e-3,
        solver: str = "power",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        n_components: int | None = None,
    ) -> None:
        self.ridge = ridge
        super().__init__(solver, tol, max_iter, n_components)

    def _solve(self, pairs: PairSet, y: ArrayLike | None) -> RivalSolution:
        return solve_gdm(GDMProblem(pairs, self.ridge), self.solver, self.tol, self.max_iter)
