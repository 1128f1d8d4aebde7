"""The problem of global distance metric learning (Xing, Ng, Jordan and Russell 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..engine.proven_sums import (
    independent_features,
    moment_along,
    proven_step,
    squared_lengths,
    sum_bounds,
    unit_basis,
)
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import symmetrize, whiten
from ..numerics.rounding import down, up
from ..pairs.pair_set import PairSet
from .rival import differences, quadratic_forms, span_basis

if TYPE_CHECKING:
    import cvxpy as cp

LEAK = 1e-6
"""A dissimilar pair is outside the similar ones' span if by more than this share of the spread."""


@dataclass(frozen=True, eq=False)
class GDMProblem:
    """State the problem of GDM, with its value and an upper bound on its optimum.

    max_{A PSD} sum_D ||x_i - x_j||_A  s.t.  <C, A> <= 1,  C = sum_S v v' + ridge tr(.)/m I.

    With ridge = 0 it is the publication's problem in its second form, which it solves for a full
    matrix. It is unbounded as soon as a dissimilar pair leaves the span of the similar ones,
    as is usual where the labeled points are no more than the features; a ridge bounds it. What
    joins the diagonal of C is the double that the machine has for ridge tr(.)/m.

    Parameters
    ----------
    pairs : PairSet
        Only the labeled ones matter, each counts once whatever its confidence.
    ridge : float
        In units of the mean diagonal entry of sum_S v v'.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> GDMProblem(pairs, ridge=0.0).value(np.array([[0.25]]))
    4.0
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
    def dissimilar(self) -> FloatArray:
        """The differences of the dissimilar pairs, without those of equal points."""
        V = differences(self.pairs, self.pairs.dissimilar)
        return np.asarray(V[np.any(V != 0.0, axis=1)])

    @cached_property
    def similar_moment(self) -> FloatArray:
        """The matrix C of the constraint: the similar pairs' second moment, with the ridge."""
        V = differences(self.pairs, self.pairs.similar)
        return V.T @ V + self._ridge_entry * np.eye(V.shape[1])

    @cached_property
    def whitening(self) -> FloatArray:
        """Whitened coordinates T of the labeled points' span: T'CT = I, so <C, TBT'> = tr B."""
        Q = span_basis(self.pairs.points[np.unique(self.pairs.labeled)])
        V = differences(self.pairs, self.pairs.similar) @ Q
        C = symmetrize(Q.T @ self.similar_moment @ Q)

        def moment_along(directions: FloatArray) -> FloatArray:
            along = V @ directions
            return np.asarray(along.T @ along + self._ridge_entry * (directions.T @ directions))

        T = whiten(C, np.zeros_like(C), moment_along)
        self._require_bounded(self.dissimilar @ Q, C, T)
        return np.asarray(Q @ T)

    def value(self, A: FloatArray) -> float:
        """The sum of the dissimilar pairs' distances, sum_D ||x_i - x_j||_A."""
        return float(np.sum(np.sqrt(quadratic_forms(A, self.dissimilar))))

    def value_from_below(self, L: FloatArray) -> float:
        """A lower bound on the objective at the multiple of LL' that meets the constraint."""
        try:
            least = sum_bounds(np.sqrt(squared_lengths(L, self.dissimilar)[0]), 1)[0]
            near = squared_lengths(L, differences(self.pairs, self.pairs.similar))[1]
            cost = sum_bounds(near)[1]
            cost += Fraction(self._ridge_entry) * sum_bounds(np.square(L).ravel(), 1)[1]
            root = math.nextafter(math.sqrt(up(cost)), math.inf)
            return max(0.0, math.nextafter(down(least) / root, 0.0))
        except OverflowError:
            return 0.0

    def upper_bound(self, A: FloatArray) -> float:
        """Bound the optimum from above, at a metric A.

        sqrt(2 theta sum_k l_k) >= g(A*), g the objective; equal at A = A*.

        For any lengths l > 0 and t > 0, sqrt(d) <= (t l + d / (t l)) / 2. So, if the difference
        theta C - G is proven PSD for G = sum_D v v' / (2 l), g(A*) <= t sum l / 2 + <G, A*> / t <=
        t sum l / 2 + theta / t, and the best t leaves this. l are the distances under A. Infinite
        where one of them is 0, and where nothing can be proven: C is singular, or nearly.
        """
        far, near = self.dissimilar, differences(self.pairs, self.pairs.similar)
        lengths = np.sqrt(quadratic_forms(A, far))
        if not np.all(lengths > 0.0) or not np.all(np.isfinite(self.similar_moment)):
            return np.inf
        kept = np.flatnonzero(np.any(far, axis=0) | np.any(near, axis=0))
        if self._ridge_entry == 0.0:
            kept = independent_features(self.pairs.points[np.unique(self.pairs.labeled)])
        T = unit_basis(self.similar_moment[np.ix_(kept, kept)])
        C = moment_along(T, near[:, kept], np.ones(len(near)), self._ridge_entry)
        G = moment_along(T, far[:, kept], 0.5 / lengths)
        step = proven_step(*C, *G)
        if step is None:
            return np.inf
        try:
            square = 2 * sum_bounds(lengths)[1] / Fraction(step)
            return math.nextafter(math.sqrt(up(square)), math.inf)
        except OverflowError:
            return np.inf

    @cached_property
    def _ridge_entry(self) -> float:
        V = differences(self.pairs, self.pairs.similar)
        return float(self.ridge * np.sum(V * V) / V.shape[1])

    def _require_bounded(self, V: FloatArray, C: FloatArray, T: FloatArray) -> None:
        spread = np.maximum(np.sqrt(np.mean(V * V, axis=0)), 1e-300)
        outside = np.abs(V - V @ T @ (T.T @ C)) / spread
        if T.shape[1] < len(C) and np.max(outside) > LEAK:
            raise ValueError(
                "GDM is unbounded, as far as rounding can tell: some dissimilar pair "
                "differs in a direction in which no similar pair does, so the metric may grow "
                "along it for ever. Use ridge > 0, or label more points."
            )


def bound_from_lengths(W: FloatArray, lengths: FloatArray) -> float:
    """Bound the optimum from above, by the lengths of the dissimilar pairs at A = FF'.

    sqrt(2 g lambda_max(G)), g = sum_k ||F'w_k||, G = sum_k w_k w_k' / (2 ||F'w_k||).

    :meth:`GDMProblem.upper_bound` in whitened coordinates, from the lengths ||F'w_k||, but for the
    rounding errors: it tells the solver when to stop and is no proof.

    Examples
    --------
    >>> bound_from_lengths(np.array([[3.0, 4.0]]), np.array([5.0]))
    5.0
    """
    G = symmetrize((W / (2.0 * lengths[:, None])).T @ W)
    return float(np.sqrt(2.0 * np.sum(lengths) * np.linalg.eigvalsh(G)[-1]))


def state_gdm(problem: GDMProblem) -> cp.Problem:
    """State GDM in CVXPY.

    max sum_D sqrt(v'Av)  s.t.  <C, A> <= 1, A PSD, Xing et al. (2002), as a ``cvxpy.Problem``.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> round(float(state_gdm(GDMProblem(pairs, ridge=0.0)).solve(solver="CLARABEL")), 4)
    4.0
    """
    import cvxpy as cp

    from .conic import squared_distances

    A = cp.Variable((problem.pairs.n_features,) * 2, PSD=True, name="A")
    far_apart = cp.sum(cp.sqrt(squared_distances(A, problem.dissimilar)))
    held_together = cp.sum(cp.multiply(problem.similar_moment, A)) <= 1
    return cp.Problem(cp.Maximize(far_apart), [held_together])
