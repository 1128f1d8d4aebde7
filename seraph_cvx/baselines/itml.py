"""Information-theoretic metric learning (ITML; Davis, Kulis, Jain, Sra and Dhillon 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from .itml_problem import ITMLProblem, state_itml
from .rival import CertifiedRival, RivalSolution, check_limits, descend, span_basis


def solve_itml(
    problem: ITMLProblem, solver: str = "descent", tol: float = 1e-6, max_iter: int = 1_000
) -> RivalSolution:
    """Solve an :class:`ITMLProblem`, whose optimum is unique, in one of three ways.

    All work on the span of the labeled points, outside of which A = I, save the conic solvers.

    Parameters
    ----------
    problem : ITMLProblem
    solver : "descent", "bregman" or the name of a CVXPY solver
        "descent" eliminates the slacks and minimizes over A = FF' by L-BFGS. "bregman" is the
        publication's: one constraint after the other, each met by a Bregman projection; it is slow
        where many constraints contradict each other.
    tol : float
        Relative gap to reach.
    max_iter : int
        L-BFGS iterations, or sweeps over all constraints.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> problem = ITMLProblem(pairs, bounds=(1.0, 9.0))
    >>> [solve_itml(problem, solver).metric.round(3).item() for solver in ("descent", "bregman")]
    [0.5, 0.5]
    """
    check_limits(tol, max_iter)
    if solver == "descent":
        A, iterations = _minimize_without_slacks(problem, max_iter)
        multipliers = problem.multipliers(A)
    elif solver == "bregman":
        A, multipliers, iterations = _project_in_turn(problem, tol, max_iter)
    else:
        from .conic import solve_statement

        A, iterations = solve_statement(state_itml(problem), solver)
        multipliers = problem.multipliers(A)
    return RivalSolution(
        metric=A,
        value=problem.value(A),
        proven_value=problem.value_from_above(A),
        bound=problem.lower_bound(multipliers),
        solver=solver,
        iterations=iterations,
    )


def _minimize_without_slacks(problem: ITMLProblem, max_iter: int) -> tuple[FloatArray, int]:
    Q = _basis(problem)
    V, xi0, gamma = problem.vectors @ Q, problem.targets, problem.gamma

    def value_and_gradient(F: FloatArray) -> tuple[float, FloatArray]:
        A = F @ F.T
        xi = problem.slacks(A, V)
        if np.linalg.slogdet(F)[1] == -np.inf or np.min(xi) <= 0.0:
            return np.inf, np.zeros_like(F)
        log_det = 2.0 * float(np.linalg.slogdet(F)[1])
        pull = (V * (gamma * (1.0 / xi0 - 1.0 / xi))[:, None]).T @ V
        value = float(np.trace(A)) - log_det - len(A) + problem.slack_cost(xi)
        return value, 2.0 * (F + pull @ F - np.linalg.inv(F).T)

    F, iterations = descend(value_and_gradient, np.eye(Q.shape[1]), max_iter)
    return _outside_identity(Q, F @ F.T), iterations


def _project_in_turn(
    problem: ITMLProblem, tol: float, max_iter: int
) -> tuple[FloatArray, FloatArray, int]:
    """Make sweeps of Bregman projections until the gap is closed; A, lambda and the sweeps."""
    Q = _basis(problem)
    V, signs = problem.vectors @ Q, problem.signs
    B, xi, multipliers = np.eye(Q.shape[1]), problem.targets.copy(), np.zeros(len(V))
    sweeps = 0
    while True:
        sweeps += 1
        _sweep(B, xi, multipliers, V, signs, problem.gamma)
        B[:] = np.linalg.inv(np.eye(len(B)) + (V * (signs * multipliers)[:, None]).T @ V)
        A = _outside_identity(Q, B)
        value = problem.value_from_above(A)
        closed = value - problem.lower_bound(multipliers) <= tol * max(1.0, value)
        if closed or sweeps == max_iter:
            return A, multipliers, sweeps


def _sweep(
    B: FloatArray,
    xi: FloatArray,
    multipliers: FloatArray,
    V: FloatArray,
    signs: FloatArray,
    gamma: float,
) -> None:
    """Project onto each constraint once, in place: Algorithm 1 of the publication, exact steps.

    To meet v'Av = xi exactly takes alpha = delta gamma/(gamma + 1) (1/p - 1/xi) (derived here). The
    publication prints, from memory, delta/2 (1/p - gamma/xi): the same for gamma = 1 only.
    """
    for k, v in enumerate(V):
        Bv = B @ v
        p = float(v @ Bv)
        exact = signs[k] * gamma / (gamma + 1.0) * (1.0 / p - 1.0 / xi[k])
        alpha = min(multipliers[k], exact)
        multipliers[k] -= alpha
        step = signs[k] * alpha
        xi[k] *= gamma / (gamma + step * xi[k])
        B += (step / (1.0 - step * p)) * np.outer(Bv, Bv)


def _basis(problem: ITMLProblem) -> FloatArray:
    return span_basis(problem.pairs.points[np.unique(problem.pairs.labeled)])


def _outside_identity(Q: FloatArray, B: FloatArray) -> FloatArray:
    """Extend B from the span of Q by the identity: I - QQ' + QBQ', or QBQ' if Q is square."""
    if Q.shape[0] == Q.shape[1]:
        return symmetrize(Q @ B @ Q.T)
    return symmetrize(np.eye(len(Q)) + Q @ (B - np.eye(len(B))) @ Q.T)


class ITML(CertifiedRival):
    """Keep bounds on distances with the metric nearest to the Euclidean one (ITML).

    min_A D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0)), Davis et al. (2007).

    subject to v'Av <= xi_k for similar and v'Av >= xi_k for dissimilar pairs: the metric nearest to
    the Euclidean one, in the LogDet divergence, that keeps the bounds up to a priced slack. See
    :class:`~seraph_cvx.baselines.itml_problem.ITMLProblem` for what was chosen where the
    publication is silent. It chooses gamma by cross-validation; 1 is this package's default.
    Unlabeled points matter only for the default bounds. Agreement with the authors' program is
    unverified.

    Parameters
    ----------
    gamma : float, default=1.0
        Larger keeps the bounds more strictly.
    bounds : (float, float), optional
        u and l, of squared distances; by default the 5th and 95th percentile of the Euclidean ones.
    solver : str, default="descent"
        L-BFGS on the problem without slacks; "bregman", the publication's cyclic projections; or
        the name of a CVXPY solver ("CLARABEL", "SCS", ...) for small data.
    tol : float, default=1e-6
        Relative duality gap to reach; a wider one raises a warning.
    max_iter : int, default=1000
    n_components : int, optional
        Rows of `components_`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        As for :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    objective_ : float
        The two divergences together.
    n_iter_ : int
        L-BFGS iterations, sweeps, or iterations of the conic solver.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = ITML().fit(X, [0, 0, 1, 1])
    >>> model.transform(X)[:, 0].round(1) + 0.0
    array([0. , 0. , 3.6, 3.7])
    """

    def __init__(
        self,
        gamma: float = 1.0,
        bounds: tuple[float, float] | None = None,
        solver: str = "descent",
        tol: float = 1e-6,
        max_iter: int = 1_000,
        n_components: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.bounds = bounds
        super().__init__(solver, tol, max_iter, n_components)

    def _solve(self, pairs: PairSet, y: ArrayLike | None) -> RivalSolution:
        return solve_itml(self._problem(pairs), self.solver, self.tol, self.max_iter)

    def _problem(self, pairs: PairSet) -> ITMLProblem:
        return ITMLProblem(pairs, self.gamma, self.bounds)

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        void = self._problem(pairs).describe_void_pairs()
        return [*([UserWarning(void)] if void else []), *super()._learn(pairs, y)]
