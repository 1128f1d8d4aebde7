"""Global distance metric learning (GDM; Xing, Ng, Jordan and Russell 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_number
from ..numerics.proven_sums import (
    independent_features,
    moment_along,
    proven_step,
    squared_lengths,
    sum_bounds,
    unit_basis,
)
from ..numerics.psd_cone import scaled_factor, symmetrize, whiten
from ..numerics.rounding import down, up
from ..pairs.pair_set import PairSet
from ..paper import differences
from .rival import (
    CertifiedRival,
    RivalSolution,
    check_limits,
    moment,
    quadratic_forms,
    solve_statement,
    span_basis,
    state_squared_distances,
)

if TYPE_CHECKING:
    import cvxpy as cp

LEAK = 1e-6
"""A dissimilar pair is outside the similar ones' span if by more than this share of the spread."""

CHECK_EVERY = 10
"""Steps between two checks of the gap, which cost an eigendecomposition each."""


class GDM(CertifiedRival):
    """Keep dissimilar points far apart while similar ones stay near (GDM).

    max_{A PSD} sum_D ||x_i - x_j||_A  s.t.  sum_S ||x_i - x_j||_A^2 <= 1, Xing et al. (2002).

    The publication leaves open what to do where this is unbounded (usual with fewer labeled points
    than features); here a small multiple of the identity joins the constraint, and directions in
    which no labeled points differ get distance 0. The default ridge is this package's choice, as is
    the solver. Agreement with the authors' program, which must stop somewhere in those cases too,
    is unverified.

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


@dataclass(frozen=True, eq=False)
class GDMProblem:
    """The problem of GDM: max_{A PSD} sum_D ||x_i - x_j||_A  s.t.  <C, A> <= 1.

    C = sum_S v v' + ridge tr(.)/m I; each labeled pair counts once, whatever its confidence.
    Without a ridge it is unbounded as soon as a dissimilar pair leaves the similar ones' span.
    """

    pairs: PairSet
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        check_number(self.ridge, "ridge", 0.0)
        if not len(self.pairs.similar):
            raise ValueError(
                "GDM needs similar pairs, or its metric may grow without bound: give the same "
                "class to two points at least, or rows of `similar`."
            )
        if not np.any(self.dissimilar):
            raise ValueError(
                "GDM needs dissimilar pairs of distinct points, or every metric has the same "
                "value: label points of two classes, or give rows of `dissimilar`."
            )
        if not np.any(self.similar_moment):
            raise ValueError(
                "All similar pairs join equal points, so they do not bound the metric: label more "
                "points of a class."
            )

    @cached_property
    def similar(self) -> FloatArray:
        """The differences of the similar pairs."""
        return differences(self.pairs.points, self.pairs.similar)

    @cached_property
    def dissimilar(self) -> FloatArray:
        """The differences of the dissimilar pairs, without those of equal points."""
        V = differences(self.pairs.points, self.pairs.dissimilar)
        return np.asarray(V[np.any(V != 0.0, axis=1)])

    @cached_property
    def labeled_points(self) -> FloatArray:
        """The points of labeled pairs."""
        return np.asarray(self.pairs.points[np.unique(self.pairs.labeled)])

    @cached_property
    def ridge_entry(self) -> float:
        """What joins the diagonal of C."""
        return float(self.ridge * np.sum(self.similar**2) / self.similar.shape[1])

    @cached_property
    def similar_moment(self) -> FloatArray:
        """The matrix C of the constraint: the similar pairs' second moment, with the ridge."""
        return moment(self.similar) + self.ridge_entry * np.eye(self.similar.shape[1])

    @cached_property
    def whitening(self) -> FloatArray:
        """Whitened coordinates T of the labeled points' span: T'CT = I, so <C, TBT'> = tr B."""
        Q = span_basis(self.labeled_points)
        C = symmetrize(Q.T @ self.similar_moment @ Q)

        def moment_in(basis: FloatArray) -> FloatArray:
            return moment(self.similar @ Q @ basis) + self.ridge_entry * (basis.T @ basis)

        T, V = whiten(C, np.zeros_like(C), moment_in), self.dissimilar @ Q
        spread = np.maximum(np.sqrt(np.mean(V * V, axis=0)), 1e-300)
        outside = np.abs(V - V @ T @ (T.T @ C)) / spread
        if T.shape[1] < len(C) and np.max(outside) > LEAK:
            raise ValueError(
                "GDM is unbounded, as far as rounding can tell: some dissimilar pair "
                "differs in a direction in which no similar pair does, so the metric may grow "
                "along it for ever. Use ridge > 0, or label more points."
            )
        return np.asarray(Q @ T)

    def value(self, A: FloatArray) -> float:
        """The sum of the dissimilar pairs' distances, sum_D ||x_i - x_j||_A."""
        return float(np.sum(np.sqrt(quadratic_forms(A, self.dissimilar))))

    def value_from_below(self, L: FloatArray) -> float:
        """A lower bound on the objective at the multiple of LL' that meets the constraint."""
        try:
            least = sum_bounds(np.sqrt(squared_lengths(L, self.dissimilar)[0]), 1)[0]
            cost = sum_bounds(squared_lengths(L, self.similar)[1])[1]
            cost += Fraction(self.ridge_entry) * sum_bounds(np.square(L).ravel(), 1)[1]
            root = math.nextafter(math.sqrt(up(cost)), math.inf)
            return max(0.0, math.nextafter(down(least) / root, 0.0))
        except OverflowError:
            return 0.0

    def upper_bound(self, A: FloatArray) -> float:
        """Bound the optimum from above, at a metric A: sqrt(2 theta sum_k l_k), equal at A = A*.

        For any lengths l > 0 and t > 0, sqrt(d) <= (t l + d / (t l)) / 2. So, if the difference
        theta C - G is proven PSD for G = sum_D v v' / (2 l), g(A*) <= t sum l / 2 + <G, A*> / t <=
        t sum l / 2 + theta / t, and the best t leaves this. l are the distances under A. Infinite
        where one of them is 0, and where nothing can be proven: C is singular, or nearly.
        """
        lengths = np.sqrt(quadratic_forms(A, self.dissimilar))
        if not np.all(lengths > 0.0) or not np.all(np.isfinite(self.similar_moment)):
            return np.inf
        kept = np.flatnonzero(np.any(self.dissimilar, axis=0) | np.any(self.similar, axis=0))
        if self.ridge_entry == 0.0:
            kept = independent_features(self.labeled_points)
        T = unit_basis(self.similar_moment[np.ix_(kept, kept)])
        C = moment_along(T, self.similar[:, kept], np.ones(len(self.similar)), self.ridge_entry)
        step = proven_step(*C, *moment_along(T, self.dissimilar[:, kept], 0.5 / lengths))
        if step is None:
            return np.inf
        try:
            square = 2 * sum_bounds(lengths)[1] / Fraction(step)
            return math.nextafter(math.sqrt(up(square)), math.inf)
        except OverflowError:
            return np.inf

    def state(self) -> cp.Problem:
        """State it in CVXPY: max sum_D sqrt(v'Av)  s.t.  <C, A> <= 1, A PSD."""
        import cvxpy as cp

        A = cp.Variable(self.similar_moment.shape, PSD=True, name="A")
        goal = cp.sum(cp.sqrt(state_squared_distances(A, self.dissimilar)))
        return cp.Problem(cp.Maximize(goal), [cp.sum(cp.multiply(self.similar_moment, A)) <= 1])


def solve_gdm(
    problem: GDMProblem, solver: str = "power", tol: float = 1e-6, max_iter: int = 10_000
) -> RivalSolution:
    """Solve a :class:`GDMProblem` by a power method to a relative gap, or by a conic solver.

    In whitened coordinates w = T'v, A = T FF' T' it is max_F sum_D ||F'w|| over ||F||_F = 1: a
    convex function over a ball, so F <- GF / ||GF||_F with G = sum_D w w' / (2 ||F'w||) ascends
    without a step size (Journee, Nesterov, Richtarik and Sepulchre 2010).
    """
    check_limits(tol, max_iter)
    W = problem.dissimilar @ problem.whitening  # an error, with a remedy, where it is unbounded
    if solver == "power":
        F, steps = _ascend(W, tol, max_iter)
        L = problem.whitening @ F
        A = L @ L.T
    else:
        A, steps = solve_statement(problem.state(), solver)
        L = scaled_factor(A)
    A = A / float(np.vdot(problem.similar_moment, A))
    below, above = problem.value_from_below(L), problem.upper_bound(A)
    return RivalSolution(A, problem.value(A), below, above, solver, steps, is_maximum=True)


def _ascend(W: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Maximize g = sum_k ||F'w_k|| to half of `tol`: the factor F, and the steps it took.

    The bound sqrt(2 g lambda_max(G)), G = sum_k w_k w_k' / (2 ||F'w_k||), is `upper_bound` in
    whitened coordinates but for the rounding errors. Half, because the proof that follows finds a
    wider gap.
    """
    F = np.eye(W.shape[1]) / np.sqrt(W.shape[1])
    for step in range(max_iter):
        WF = W @ F
        lengths = np.linalg.norm(WF, axis=1)
        value = np.sum(lengths)
        if step % CHECK_EVERY == 0:
            largest = np.linalg.eigvalsh(symmetrize(moment(W, 0.5 / lengths)))[-1]
            if np.sqrt(2.0 * value * largest) <= (1.0 + tol / 2.0) * value:
                return F, step
        F = (W / lengths[:, None]).T @ WF
        F /= np.linalg.norm(F)
    return F, max_iter
