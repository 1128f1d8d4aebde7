"""Information-theoretic metric learning (ITML; Davis, Kulis, Jain, Sra and Dhillon 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from ..numerics.checks import FloatArray, IntArray, check_number
from ..numerics.proven_sums import log_det_from_below, moment_along, sum_bounds
from ..numerics.psd_cone import inverse_factor, symmetrize
from ..numerics.rounding import (
    FEW_ROUNDINGS,
    FUNCTION_ERROR,
    SECOND_ORDER,
    UNDERFLOW_ENTRY,
    UNIT,
    down,
    gamma,
    up,
)
from ..pairs.pair_set import PairSet
from ..paper import differences
from .rival import (
    CertifiedRival,
    RivalSolution,
    check_limits,
    descend,
    moment,
    quadratic_forms,
    solve_statement,
    span_basis,
    state_squared_distances,
)

if TYPE_CHECKING:
    import cvxpy as cp

PERCENTILES = (5.0, 95.0)
"""The percentiles of the distances that the publication takes for the bounds u and l."""


class ITML(CertifiedRival):
    """Keep bounds on distances with the metric nearest to the Euclidean one (ITML).

    min_A D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0)), Davis et al. (2007).

    subject to v'Av <= xi_k for similar and v'Av >= xi_k for dissimilar pairs: the metric nearest to
    the Euclidean one, in the LogDet divergence, that keeps the bounds up to a priced slack. All
    labeled pairs of distinct points are constraints, each counts once whatever its confidence; the
    publication draws some at random. It chooses gamma by cross-validation; 1 is this package's
    default. Unlabeled points matter only for the default bounds. Agreement with the authors'
    program is unverified.

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
        problem = ITMLProblem(pairs, self.gamma, self.bounds)
        return solve_itml(problem, self.solver, self.tol, self.max_iter)

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        void = np.flatnonzero(~np.any(differences(pairs.points, pairs.dissimilar), axis=1))
        not_reached = super()._learn(pairs, y)
        if not len(void):
            return not_reached
        i, j = pairs.dissimilar[void[0]].tolist()
        return [
            UserWarning(
                f"Points {i} and {j} are dissimilar but equal ({len(void)} such pairs in all): no "
                "metric can tell them apart, so they are left out."
            ),
            *not_reached,
        ]


@dataclass(frozen=True, eq=False)
class ITMLProblem:
    """The problem of ITML: min_{A, xi} D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0)).

    subject to v'Av <= xi_k for similar pairs (xi0 = u) and v'Av >= xi_k for dissimilar ones
    (xi0 = l), where D_ld(A, B) = tr(AB^-1) - log det(AB^-1) - m. The best xi for a given A is
    max(v'Av, u) or min(v'Av, l), so that `value` is a convex function of A alone. Equal points are
    left out of the percentiles: u = 0 would ask for a divergence from 0.
    """

    pairs: PairSet
    gamma: float = 1.0
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_number(self.gamma, "gamma", 0.0, strict=True)
        for k, bound in enumerate(self.bounds or ()):
            check_number(bound, f"bounds[{k}]", 0.0, strict=True)
        if not len(self._distinct):
            raise ValueError(
                "Every labeled pair joins two equal points, so there is nothing to learn from: "
                "label distinct points."
            )

    @cached_property
    def _distinct(self) -> IntArray:
        """The labeled pairs of distinct points."""
        V = differences(self.pairs.points, self.pairs.labeled)
        return np.flatnonzero(np.any(V, axis=1))

    @cached_property
    def vectors(self) -> FloatArray:
        """The differences v_k of the labeled pairs of distinct points, the similar ones first."""
        return differences(self.pairs.points, self.pairs.labeled[self._distinct])

    @cached_property
    def signs(self) -> FloatArray:
        """The sign delta_k of each pair: +1 if it is similar, -1 if dissimilar."""
        return np.where(self._distinct < len(self.pairs.similar), 1.0, -1.0)

    @cached_property
    def targets(self) -> FloatArray:
        """The bound xi0_k of each pair: u if it is similar, l if dissimilar."""
        bounds = self.bounds
        if bounds is None:
            squares = pdist(self.pairs.points, "sqeuclidean")
            bounds = np.percentile(squares[squares > 0.0], PERCENTILES)
        return np.where(self.signs > 0.0, *bounds)

    @cached_property
    def basis(self) -> FloatArray:
        """The span of the labeled points, outside of which the best A is I."""
        return span_basis(self.pairs.points[np.unique(self.pairs.labeled)])

    def slacks(self, A: FloatArray, vectors: FloatArray | None = None) -> FloatArray:
        """The best slack variables for A: xi_k = max(v'Av, u) or min(v'Av, l)."""
        p = quadratic_forms(A, self.vectors if vectors is None else vectors)
        xi0 = self.targets
        return np.where(self.signs > 0.0, np.maximum(p, xi0), np.minimum(p, xi0))

    def multipliers(self, A: FloatArray) -> FloatArray:
        """Multipliers that make xi(A) stationary: lambda_k = delta_k gamma (1/xi0_k - 1/xi_k).

        Infinite for a dissimilar pair at distance 0, which bounds nothing.
        """
        with np.errstate(divide="ignore"):
            inverse = 1.0 / self.slacks(A)
        return self.signs * self.gamma * (1.0 / self.targets - inverse)

    def value(self, A: FloatArray) -> float:
        """The objective at A and its best slacks: D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0))."""
        sign, log_det = np.linalg.slogdet(A)
        if sign <= 0.0:
            return np.inf
        return float(np.trace(A) - log_det - len(A)) + self.slack_cost(self.slacks(A))

    def slack_cost(self, xi: FloatArray) -> float:
        """The cost of the slacks: gamma D_ld(diag(xi), diag(xi0))."""
        ratios = xi / self.targets
        with np.errstate(divide="ignore"):  # xi = 0 costs infinitely much
            return float(self.gamma * np.sum(ratios - np.log(ratios) - 1.0))

    def value_from_above(self, A: FloatArray) -> float:
        """An upper bound on `value` at A; infinite unless A is proven positive definite."""
        A = symmetrize(A)
        T = inverse_factor(A)
        if T is None:
            return np.inf
        size = np.abs(T)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            sizes = np.sum(size.T @ np.abs(A) @ size, axis=1)
            error = gamma(2 * len(A) + FEW_ROUNDINGS) * SECOND_ORDER * sizes + UNDERFLOW_ENTRY
            log_det = log_det_from_below(T, symmetrize(T.T @ A @ T), error)
        if log_det is None:
            return np.inf
        try:
            trace = sum_bounds(np.diag(A))[1]
            return up(trace - log_det - len(A) + Fraction(self.gamma) * self._slack_cost(A))
        except OverflowError:
            return np.inf

    def lower_bound(self, multipliers: FloatArray) -> float:
        """Bound the optimum from below, at multipliers of the constraints.

        log det(I + sum delta lambda v v') + gamma sum log(1 - delta lambda xi0 / gamma).

        The dual function at lambda >= 0 (derived here), rounded down: no A has a smaller `value`.
        Where lambda is not proven to be inside its domain, and where that is better, the bound of
        lambda = 0, which is 0, is returned.
        """
        V, signed = self.vectors, self.signs * np.maximum(multipliers, 0.0)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            t = signed * self.targets / self.gamma
            shrunk = (1.0 - t) - 8.0 * UNIT * (1.0 + np.abs(t))
            M = np.eye(self.pairs.n_features) + symmetrize(moment(V, signed))
        if not np.all(shrunk > 0.0) or not np.all(np.isfinite(t)) or not np.all(np.isfinite(M)):
            return 0.0
        T = inverse_factor(M)
        if T is None:
            return 0.0
        log_det = log_det_from_below(T, *moment_along(T, V, signed, ridge=1.0))
        if log_det is None:
            return 0.0
        logarithms = np.where(t < 0.5, np.log1p(-np.minimum(t, 0.5)), np.log(shrunk))
        least = sum_bounds(logarithms, 2 * FUNCTION_ERROR)[0]
        return max(0.0, down(log_det + Fraction(self.gamma) * least))

    def _slack_cost(self, A: FloatArray) -> Fraction:
        """An upper bound on D_ld(diag(xi), diag(xi0)) at the best xi.

        With x = xi/xi0 - 1 a term is x - log(1 + x): it grows with a distance that is too long and
        falls with one that is too short, so that the bound of that side is put in.
        """
        V, xi0 = self.vectors, self.targets
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            p, sizes = np.sum((V @ A) * V, axis=1), quadratic_forms(np.abs(A), np.abs(V))
            error = gamma(2 * len(A) + FEW_ROUNDINGS) * SECOND_ORDER * sizes + UNDERFLOW_ENTRY
            long = np.maximum(p + error - xi0, 0.0) / xi0
            near_zero = np.maximum(p - error, 0.0) / xi0
            short = np.minimum(p - error - xi0, 0.0) / xi0
        x = np.where(self.signs > 0.0, long, short)
        with np.errstate(divide="ignore"):  # a distance that may be 0 costs infinitely much
            deep = np.log(near_zero)
        logarithms = np.where(x < -0.5, deep, np.log1p(np.maximum(x, -0.5)))
        return sum_bounds(np.concatenate([x, -logarithms]), 2 * FUNCTION_ERROR)[1]

    def state(self) -> cp.Problem:
        """State it in CVXPY, with both A and xi, and one constraint of all pairs."""
        import cvxpy as cp

        m = self.pairs.n_features
        A = cp.Variable((m, m), PSD=True, name="A")
        xi = cp.Variable(len(self.signs), name="xi")
        ratios = cp.multiply(1.0 / self.targets, xi)
        slack_divergence = self.gamma * cp.sum(ratios - cp.log(ratios) - 1)
        too_far = cp.multiply(self.signs, state_squared_distances(A, self.vectors) - xi)
        goal = cp.trace(A) - cp.log_det(A) - m + slack_divergence
        return cp.Problem(cp.Minimize(goal), [too_far <= 0])


def solve_itml(
    problem: ITMLProblem, solver: str = "descent", tol: float = 1e-6, max_iter: int = 1_000
) -> RivalSolution:
    """Solve an :class:`ITMLProblem`, whose optimum is unique, in one of three ways.

    "descent" eliminates the slacks and minimizes over A = FF' by L-BFGS. "bregman" meets one
    constraint after the other by a Bregman projection. Any other is the name of a CVXPY solver.
    """
    check_limits(tol, max_iter)
    if solver == "bregman":
        A, multipliers, iterations = _project_in_turn(problem, tol, max_iter)
    else:
        if solver == "descent":
            A, iterations = _minimize_without_slacks(problem, max_iter)
        else:
            A, iterations = solve_statement(problem.state(), solver)
        multipliers = problem.multipliers(A)
    above, below = problem.value_from_above(A), problem.lower_bound(multipliers)
    return RivalSolution(A, problem.value(A), above, below, solver, iterations)


def _minimize_without_slacks(problem: ITMLProblem, max_iter: int) -> tuple[FloatArray, int]:
    V = problem.vectors @ problem.basis

    def value_and_gradient(F: FloatArray) -> tuple[float, FloatArray]:
        A, log_det = F @ F.T, 2.0 * float(np.linalg.slogdet(F)[1])
        xi = problem.slacks(A, V)
        if log_det == -np.inf or np.min(xi) <= 0.0:
            return np.inf, np.zeros_like(F)
        slope = moment(V, problem.gamma * (1.0 / problem.targets - 1.0 / xi))
        value = float(np.trace(A)) - log_det - len(A) + problem.slack_cost(xi)
        return value, 2.0 * (F + slope @ F - np.linalg.inv(F).T)

    F, iterations = descend(value_and_gradient, np.eye(V.shape[1]), max_iter)
    return extend_by_identity(problem.basis, F @ F.T), iterations


def _project_in_turn(
    problem: ITMLProblem, tol: float, max_iter: int
) -> tuple[FloatArray, FloatArray, int]:
    """Make sweeps of Bregman projections until the gap is closed; A, lambda and the sweeps.

    Algorithm 1 of the publication, exact steps. To meet v'Av = xi exactly takes alpha = delta
    gamma/(gamma + 1) (1/p - 1/xi) (derived here). The publication prints, from memory, delta/2
    (1/p - gamma/xi): the same for gamma = 1 only.
    """
    V, signs, gamma = problem.vectors @ problem.basis, problem.signs, problem.gamma
    identity = np.eye(V.shape[1])
    B: FloatArray = identity
    xi, multipliers = problem.targets.copy(), np.zeros(len(V))
    sweeps, closed = 0, False
    while not closed and sweeps < max_iter:
        sweeps += 1
        for k, v in enumerate(V):
            Bv = B @ v
            p = float(v @ Bv)
            exact = signs[k] * gamma / (gamma + 1.0) * (1.0 / p - 1.0 / xi[k])
            alpha = min(multipliers[k], exact)
            multipliers[k] -= alpha
            step = signs[k] * alpha
            xi[k] *= gamma / (gamma + step * xi[k])
            B = B + (step / (1.0 - step * p)) * np.outer(Bv, Bv)
        B = np.asarray(np.linalg.inv(identity + moment(V, signs * multipliers)))
        A = extend_by_identity(problem.basis, B)
        value = problem.value_from_above(A)
        closed = value - problem.lower_bound(multipliers) <= tol * max(1.0, value)
    return A, multipliers, sweeps


def extend_by_identity(Q: FloatArray, B: FloatArray) -> FloatArray:
    """Extend B from the span of Q by the identity: I - QQ' + QBQ', or QBQ' if Q is square."""
    if Q.shape[0] == Q.shape[1]:
        return symmetrize(Q @ B @ Q.T)
    return symmetrize(np.eye(len(Q)) + Q @ (B - np.eye(len(B))) @ Q.T)
