"""The problem of large margin nearest neighbors (Weinberger, Blitzer and Saul 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from ...engine.proven_sums import (
    independent_features,
    moment_along,
    proven_step,
    squared_lengths,
    sum_bounds,
    unit_basis,
)
from ...numerics.checks import FloatArray, IntArray, check_number, check_points, encode_labels
from ...numerics.rounding import UNIT, down, up
from ..rival import quadratic_forms

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, eq=False)
class LMNNProblem:
    """State the problem of LMNN, with its value and a lower bound on its optimum.

    min_{A PSD} (1 - mu) sum_{j~i} d_ij + mu sum_{j~i, l} [1 + d_ij - d_il]_+, d_ij = v_ij'Av_ij.

    j~i: x_j is a target neighbor of x_i, one of the k nearest points of its class in the Euclidean
    distance; l: every point of another class. The publication (Weinberger, Blitzer and Saul 2005)
    weighs the two sums by 1 and c = mu/(1 - mu); the mu is that of Weinberger and Saul (2009).

    All triples (i, j, l) are kept, about k n^2 of them: for some hundred labeled points.

    Parameters
    ----------
    points : (n, m) array
        Of known class.
    classes : (n,) array of int
    n_neighbors : int
        k, or the size of the class less one where that is smaller. So the only point of a class has
        no target neighbors, but others keep their distance from it. Ties go to the first point.
    push_weight : float
        mu, in (0, 1).

    Examples
    --------
    >>> problem = LMNNProblem.from_labels([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> problem.target_pairs.tolist(), problem.triples.tolist()
    ([[0, 1], [1, 0]], [[0, 1, 2], [1, 0, 2]])
    >>> problem.value(np.array([[0.25]]))
    0.375
    """

    points: FloatArray
    classes: IntArray
    n_neighbors: int = 3
    push_weight: float = 0.5

    def __post_init__(self) -> None:
        check_number(self.n_neighbors, "n_neighbors", 1.0)
        check_number(self.push_weight, "push_weight", 0.0, strict=True)
        if self.push_weight >= 1.0:
            raise ValueError(f"push_weight={self.push_weight:g} is out of range: it must be < 1.")
        sizes = np.unique(self.classes, return_counts=True)[1]
        if len(sizes) < 2:
            raise ValueError(
                "LMNN needs labeled points of two classes at least, or the best metric is 0: "
                "label points of another class."
            )
        if np.max(sizes) < 2:
            raise ValueError(
                "LMNN needs two labeled points of one class at least, or no point has a target "
                "neighbor: label more points of a class."
            )

    @classmethod
    def from_labels(
        cls, X: ArrayLike, y: ArrayLike, n_neighbors: int = 3, push_weight: float = 0.5
    ) -> LMNNProblem:
        """State the problem for the points of known class, without those of unknown class (-1)."""
        points = check_points(X)
        known, classes = encode_labels(y, len(points))
        return cls(points[known], classes, n_neighbors, push_weight)

    @cached_property
    def target_pairs(self) -> IntArray:
        """The pairs (i, j) of each point i and its target neighbors j, in the order of i."""
        squares = cdist(self.points, self.points, "sqeuclidean")
        np.fill_diagonal(squares, np.inf)
        squares[self.classes[:, None] != self.classes] = np.inf
        nearest = np.argsort(squares, axis=1, kind="stable")[:, : self.n_neighbors]
        i = np.repeat(np.arange(len(nearest)), nearest.shape[1])
        pairs = np.column_stack([i, nearest.ravel()])
        return np.asarray(pairs[np.isfinite(squares[tuple(pairs.T)])])

    @cached_property
    def triples(self) -> IntArray:
        """The triples (i, j, l) of each target pair (i, j) and each point l of another class."""
        which, other = np.nonzero(self.classes[self.target_pairs[:, 0]][:, None] != self.classes)
        return np.column_stack([self.target_pairs[which], other])

    @cached_property
    def target_moment(self) -> FloatArray:
        """The second moment P of the target pairs, sum_{j~i} v_ij v_ij'."""
        V = self.differences(self.target_pairs)
        return V.T @ V

    def differences(self, rows: IntArray) -> FloatArray:
        """The differences x_i - x_j of the rows (i, j)."""
        return np.asarray(self.points[rows[:, 0]] - self.points[rows[:, 1]])

    def margins(self, A: FloatArray) -> FloatArray:
        """The margin 1 + d_ij - d_il of each triple: positive if the impostor l is too near."""
        near = quadratic_forms(A, self.differences(self.triples[:, :2]))
        return 1.0 + near - quadratic_forms(A, self.differences(self.triples[:, [0, 2]]))

    def value(self, A: FloatArray) -> float:
        """The objective at A: (1 - mu) <P, A> + mu sum [margins]_+."""
        push = np.sum(np.maximum(self.margins(A), 0.0))
        pull = np.sum(quadratic_forms(A, self.differences(self.target_pairs)))
        return float((1.0 - self.push_weight) * pull + self.push_weight * push)

    def value_from_above(self, L: FloatArray) -> float:
        """An upper bound on `value` at LL', with every rounding error allowed for."""
        mu = Fraction(self.push_weight)
        targets = squared_lengths(L, self.differences(self.target_pairs))[1]
        near = squared_lengths(L, self.differences(self.triples[:, :2]))[1]
        far = squared_lengths(L, self.differences(self.triples[:, [0, 2]]))[0]
        with np.errstate(over="ignore"):
            margins = (near - far) + (1.0 + 4.0 * UNIT * (1.0 + near + far))
        try:
            push = sum_bounds(np.maximum(margins, 0.0))[1]
            return up((1 - mu) * sum_bounds(targets)[1] + mu * push)
        except OverflowError:
            return np.inf

    def lower_bound(self, multipliers: FloatArray) -> float:
        """Bound the optimum from below, at multipliers of the triples.

        tau sum_t z_t, tau <= 1 the largest with (1 - mu) P + tau sum_t z_t W_t proven PSD.

        W_t = v_ij v_ij' - v_il v_il'. The dual of the problem is to maximize sum z over 0 <= z <=
        mu with this matrix PSD at tau = 1, so that no metric has a smaller `value`. A triple whose
        impostor differs in a feature in which no target neighbors do must have z = 0, and is
        given it. Those whose impostor equals i or j have a W_t that is PSD: z = mu
        on these alone needs no proof.

        Parameters
        ----------
        multipliers : (n_triples,) array
            z; what is outside [0, mu] is cut off.
        """
        mu, n = self.push_weight, len(self.points)
        targets = self.differences(self.target_pairs)
        to_impostor = self.differences(self.triples[:, [0, 2]])
        unseen = ~np.any(targets, axis=0)
        i, j, impostor = self.triples.T
        beyond = self.differences(self.triples[:, 1:])
        least = Fraction(mu) * int(np.sum(~np.any(to_impostor, axis=1) | ~np.any(beyond, axis=1)))
        z = np.where(np.any(to_impostor[:, unseen], axis=1), 0.0, np.clip(multipliers, 0.0, mu))
        if not np.any(z) or not np.all(np.isfinite(self.target_moment)):
            return down(least)
        codes = np.concatenate([i * n + j, i * n + impostor])
        used, position = np.unique(codes, return_inverse=True)
        weights = np.bincount(position, np.concatenate([z, -z])).astype(np.float64)
        sizes = np.bincount(position, np.concatenate([z, z])).astype(np.float64)
        longest = int(np.max(np.bincount(position)))
        V = self.differences(np.column_stack(np.divmod(used, n)))
        kept = np.setdiff1d(independent_features(self.points), np.flatnonzero(unseen))
        T = unit_basis(self.target_moment[np.ix_(kept, kept)])
        P = moment_along(T, targets[:, kept], np.full(len(targets), 1.0 - mu))
        W, W_error = moment_along(T, V[:, kept], weights, sizes=sizes, roundings=longest)
        tau = proven_step(*P, -W, W_error, furthest=1.0)
        if tau is not None:
            least = max(least, Fraction(tau) * sum_bounds(z)[0])
        return down(least)


def state_lmnn(problem: LMNNProblem) -> cp.Problem:
    """State LMNN in CVXPY.

    min (1 - mu) <P, A> + mu sum xi  s.t.  d_il - d_ij >= 1 - xi_ijl, xi >= 0, A PSD.

    The semidefinite program of Weinberger, Blitzer and Saul (2005), as a ``cvxpy.Problem``. Its
    first constraint is that of the triples.

    Examples
    --------
    >>> problem = LMNNProblem.from_labels([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> round(float(state_lmnn(problem).solve(solver="CLARABEL")), 4)
    0.3333
    """
    import cvxpy as cp

    from ..conic import squared_distances

    m, mu = problem.points.shape[1], problem.push_weight
    A = cp.Variable((m, m), PSD=True, name="A")
    xi = cp.Variable(len(problem.triples), nonneg=True, name="xi")
    near = squared_distances(A, problem.differences(problem.triples[:, :2]))
    far = squared_distances(A, problem.differences(problem.triples[:, [0, 2]]))
    pull = cp.sum(cp.multiply(problem.target_moment, A))
    return cp.Problem(cp.Minimize((1.0 - mu) * pull + mu * cp.sum(xi)), [far - near >= 1 - xi])
