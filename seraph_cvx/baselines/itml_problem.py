"""The problem of information-theoretic metric learning (Davis, Kulis, Jain, Sra, Dhillon 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import pdist

from ..engine.proven_sums import inverse_factor, log_det_from_below, moment_along, sum_bounds
from ..numerics.checks import FloatArray, IntArray, check_number
from ..numerics.psd_cone import symmetrize
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
from .rival import differences, quadratic_forms

if TYPE_CHECKING:
    import cvxpy as cp

PERCENTILES = (5.0, 95.0)
"""The percentiles of the distances that the publication takes for the bounds u and l."""


@dataclass(frozen=True, eq=False)
class ITMLProblem:
    """State the problem of ITML, with its value and a lower bound on its optimum.

    min_{A, xi} D_ld(A, I) + gamma D_ld(diag(xi), diag(xi0)), Davis et al. (2007).

    subject to v'Av <= xi_k for similar pairs (xi0 = u) and v'Av >= xi_k for dissimilar ones
    (xi0 = l), where D_ld(A, B) = tr(AB^-1) - log det(AB^-1) - m. The best xi for a given A is
    max(v'Av, u) or min(v'Av, l), so that `value` is a convex function of A alone.

    What `value_from_above` and `lower_bound` return is proven for the points, u and l as the
    doubles they are. Each determinant is bounded from below by a triangular T, see
    :func:`~seraph_cvx.engine.proven_sums.log_det_from_below`, each other sum term by term.

    Parameters
    ----------
    pairs : PairSet
        All labeled pairs are constraints (the publication draws some at random), each counts once
        whatever its confidence. Pairs of two equal points say nothing and are left out.
    gamma : float
        > 0: the weight of the slacks.
    bounds : (float, float), optional
        u and l. By default the publication's choice, the 5th and the 95th percentile of the squared
        Euclidean distances of all pairs of points, unlabeled ones too. Equal points are left out of
        it (u = 0 would ask for a divergence from 0), which the publication does not discuss.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> ITMLProblem(pairs, bounds=(4.0, 9.0)).value(np.eye(1))
    0.0
    """

    pairs: PairSet
    gamma: float = 1.0
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_number(self.gamma, "gamma", 0.0, strict=True)
        if self.bounds is not None:
            check_number(self.bounds[0], "bounds[0]", 0.0, strict=True)
            check_number(self.bounds[1], "bounds[1]", 0.0, strict=True)
        if not len(self._distinct):
            raise ValueError(
                "Every labeled pair joins two equal points, so there is nothing to learn from: "
                "label distinct points."
            )

    def describe_void_pairs(self) -> str:
        """Describe the dissimilar pairs that are left out as their points are equal; empty if none.

        Examples
        --------
        >>> ITMLProblem(PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])).describe_void_pairs()
        ''
        """
        void = np.flatnonzero(~np.any(differences(self.pairs, self.pairs.dissimilar), axis=1))
        if not len(void):
            return ""
        i, j = self.pairs.dissimilar[void[0]].tolist()
        return (
            f"Points {i} and {j} are dissimilar but equal ({len(void)} such pairs in all): no "
            "metric can tell them apart, so they are left out."
        )

    @cached_property
    def vectors(self) -> FloatArray:
        """The differences v_k of the labeled pairs of distinct points, the similar ones first."""
        return np.asarray(self._labeled[self._distinct])

    @cached_property
    def signs(self) -> FloatArray:
        """The sign delta_k of each pair: +1 if it is similar, -1 if dissimilar."""
        is_similar = np.arange(self.pairs.n_labeled) < len(self.pairs.similar)
        return np.where(is_similar, 1.0, -1.0)[self._distinct]

    @cached_property
    def targets(self) -> FloatArray:
        """The bound xi0_k of each pair: u if it is similar, l if dissimilar."""
        if self.bounds is not None:
            u, l = self.bounds  # noqa: E741  the publication's letters
        else:
            squares = pdist(self.pairs.points, "sqeuclidean")
            u, l = np.percentile(squares[squares > 0.0], PERCENTILES)  # noqa: E741
        return np.where(self.signs > 0.0, u, l)

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
            M = np.eye(self.pairs.n_features) + symmetrize((V * signed[:, None]).T @ V)
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
            p, sizes = np.einsum("ki,ki->k", V @ A, V), np.abs(V)
            sizes = np.einsum("ki,ki->k", sizes @ np.abs(A), sizes)
            error = gamma(2 * len(A) + FEW_ROUNDINGS) * SECOND_ORDER * sizes + UNDERFLOW_ENTRY
            long = np.maximum(p + error - xi0, 0.0) / xi0
            near_zero = np.maximum(p - error, 0.0) / xi0
            short = np.minimum(p - error - xi0, 0.0) / xi0
        x = np.where(self.signs > 0.0, long, short)
        with np.errstate(divide="ignore"):  # a distance that may be 0 costs infinitely much
            deep = np.log(near_zero)
        logarithms = np.where(x < -0.5, deep, np.log1p(np.maximum(x, -0.5)))
        return sum_bounds(np.concatenate([x, -logarithms]), 2 * FUNCTION_ERROR)[1]

    @cached_property
    def _labeled(self) -> FloatArray:
        return differences(self.pairs, self.pairs.labeled)

    @cached_property
    def _distinct(self) -> IntArray:
        return np.flatnonzero(np.any(self._labeled, axis=1))


def state_itml(problem: ITMLProblem) -> cp.Problem:
    """State an :class:`ITMLProblem` in CVXPY, with both A and xi as variables.

    Its first two constraints, where present, are those of the similar and the dissimilar pairs.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> statement = state_itml(ITMLProblem(pairs, bounds=(4.0, 9.0)))
    >>> round(abs(float(statement.solve(solver="CLARABEL"))), 4)
    0.0
    """
    import cvxpy as cp

    from .conic import squared_distances

    m, near = problem.pairs.n_features, problem.signs > 0.0
    A = cp.Variable((m, m), PSD=True, name="A")
    xi = cp.Variable(len(near), name="xi")
    p = squared_distances(A, problem.vectors)
    ratios = cp.multiply(1.0 / problem.targets, xi)
    divergence = cp.trace(A) - cp.log_det(A) - m
    slack_divergence = problem.gamma * cp.sum(ratios - cp.log(ratios) - 1)
    constraints = [p[near] <= xi[near]] if np.any(near) else []
    constraints += [p[~near] >= xi[~near]] if np.any(~near) else []
    return cp.Problem(cp.Minimize(divergence + slack_divergence), constraints)
