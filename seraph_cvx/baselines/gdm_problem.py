"""The problem of global distance metric learning (Xing, Ng, Jordan and Russell 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..checks import FloatArray, check_number
from ..pairs import PairSet
from ..psd_cone import symmetrise, whiten
from .rival import differences, quadratic_forms, span_basis

if TYPE_CHECKING:
    import cvxpy as cp

LEAK = 1e-6
"""A dissimilar pair leaves the span of the similar ones by more than this share of the spread."""


@dataclass(frozen=True, eq=False)
class GDMProblem:
    """max_{A PSD} sum_D ||x_i - x_j||_A  s.t.  <C, A> <= 1,  C = sum_S v v' + ridge tr(.)/m I.

    With ridge = 0 it is the publication's problem in its second form, the one solved there for a
    full matrix. It is unbounded as soon as a dissimilar pair leaves the span of the similar ones,
    as is usual where the labeled points are no more than the features; a ridge bounds it.

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
                "GDM needs similar pairs, or its metric may grow for ever: give the same class to "
                "two points at least, or rows of `similar`."
            )
        if not np.any(self.dissimilar):
            raise ValueError(
                "GDM needs dissimilar pairs of distinct points, or every metric has the same "
                "value: label points of two classes, or give rows of `dissimilar`."
            )
        if not np.any(self.similar_moment):
            raise ValueError(
                "All similar pairs join equal points, so they hold no metric back: label more "
                "points of a class."
            )

    @cached_property
    def dissimilar(self) -> FloatArray:
        """v of each dissimilar pair of distinct points; equal ones are at distance 0 always."""
        V = differences(self.pairs, self.pairs.dissimilar)
        return np.asarray(V[np.any(V != 0.0, axis=1)])

    @cached_property
    def similar_moment(self) -> FloatArray:
        """C."""
        V = differences(self.pairs, self.pairs.similar)
        return V.T @ V + self._ridge_entry * np.eye(V.shape[1])

    @cached_property
    def whitening(self) -> FloatArray:
        """T (m, r) with T' C T = I on the span of the labeled points: A = T B T', <C, A> = tr B."""
        Q = span_basis(self.pairs.points[np.unique(self.pairs.labeled)])
        V = differences(self.pairs, self.pairs.similar) @ Q
        C = symmetrise(Q.T @ self.similar_moment @ Q)

        def moment_along(axes: FloatArray) -> FloatArray:
            along = V @ axes
            return np.asarray(along.T @ along + self._ridge_entry * (axes.T @ axes))

        T = whiten(C, np.zeros_like(C), moment_along)
        self._require_bounded(self.dissimilar @ Q, C, T)
        return np.asarray(Q @ T)

    def value(self, A: FloatArray) -> float:
        """sum_D ||x_i - x_j||_A."""
        return float(np.sum(np.sqrt(quadratic_forms(A, self.dissimilar))))

    def upper_bound(self, A: FloatArray) -> float:
        """sqrt(2 g(A) lambda_max(T' grad g(A) T)) >= g(A*), g the objective; equal at A = A*.

        g is concave, so g(A*) <= g(tA) + <grad g(tA), A* - tA> for each t > 0; with g homogeneous
        of degree 1/2 and <C, A*> <= 1 the best t leaves this. Infinite where a distance is 0.
        """
        lengths = np.sqrt(quadratic_forms(A, self.dissimilar))
        if not np.all(lengths > 0.0):
            return np.inf
        return bound_from_lengths(self.dissimilar @ self.whitening, lengths)

    @cached_property
    def _ridge_entry(self) -> float:
        V = differences(self.pairs, self.pairs.similar)
        return float(self.ridge * np.sum(V * V) / V.shape[1])

    def _require_bounded(self, V: FloatArray, C: FloatArray, T: FloatArray) -> None:
        spread = np.maximum(np.sqrt(np.mean(V * V, axis=0)), 1e-300)
        outside = np.abs(V - V @ T @ (T.T @ C)) / spread
        if T.shape[1] < len(C) and np.max(outside) > LEAK:
            raise ValueError(
                "GDM is unbounded here: some dissimilar pair differs in a direction in which no "
                "similar pair does, so the metric may grow along it for ever. Use ridge > 0, or "
                "label more points."
            )


def bound_from_lengths(W: FloatArray, lengths: FloatArray) -> float:
    """sqrt(2 g lambda_max(G)), g = sum_k ||F'w_k||, G = sum_k w_k w_k' / (2 ||F'w_k||).

    :meth:`GDMProblem.upper_bound` in whitened coordinates, from the lengths ||F'w_k||.

    Examples
    --------
    >>> bound_from_lengths(np.array([[3.0, 4.0]]), np.array([5.0]))
    5.0
    """
    G = symmetrise((W / (2.0 * lengths[:, None])).T @ W)
    return float(np.sqrt(2.0 * np.sum(lengths) * np.linalg.eigvalsh(G)[-1]))


def state_gdm(problem: GDMProblem) -> cp.Problem:
    """max sum_D sqrt(v'Av)  s.t.  <C, A> <= 1, A PSD, Xing et al. (2002), as a ``cvxpy.Problem``.

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
