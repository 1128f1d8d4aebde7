"""LMNN by a first-order method, in coordinates of the target neighbors, with rounded hinges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...numerics.checks import FloatArray, IntArray
from ...numerics.psd_cone import factor, symmetrize
from ..rival import descend, span_basis
from .problem import LMNNProblem

RANK_TOLERANCE = 1e-10
"""Eigenvalues of P, and squares outside its range, below this share of the largest count as 0."""

SHARPEN = 0.3
"""The corners of the hinges shrink by this factor until the gap is closed."""

SHARPEST = 1e-9
"""The least width of a corner: below it the rounding errors of the margins matter."""

REFILL = 1e-6
"""This share of the largest eigenvalue is added to all before each descent."""


@dataclass(frozen=True, eq=False)
class TargetCoordinates:
    """Coordinates in which LMNN is solved: A = T B T' + t N N', with T'PT = I and PN = 0.

    The first sum, <P, A> = tr B, does not see N. So a triple whose impostor differs along N is met
    without cost by a large t, its multiplier is 0, and what is left to learn is B from the others
    (derived here):

        min_{B PSD} (1 - mu) tr B + mu sum_t [1 + <W_t, B>]_+
        max_z sum z   s.t.  (1 - mu) I + sum_t z_t W_t PSD, 0 <= z <= mu

    with W_t = w_ij w_ij' - w_il w_il', w = T'v. Where the labeled points are no more than the
    features usually no triple is left: B = 0, and points linked by target neighbors coincide.

    Attributes
    ----------
    problem : LMNNProblem
    T, N : (m, r) and (m, q) arrays
    is_free : boolean array
        Which triples can be met without cost.

    Examples
    --------
    >>> flat = LMNNProblem.from_labels([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0, 0, 1])
    >>> where = TargetCoordinates.of(flat)
    >>> where.is_free.tolist(), where.metric(np.zeros((1, 1)))[1, 1].round(2)
    ([True, True], np.float64(0.25))
    """

    problem: LMNNProblem
    T: FloatArray
    N: FloatArray
    is_free: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: LMNNProblem) -> TargetCoordinates:
        """Split the span of the points by the eigenvectors of P."""
        Q = span_basis(problem.points)
        P = symmetrize(Q.T @ problem.target_moment @ Q)
        eigenvalues, vectors = np.linalg.eigh(P)
        seen = eigenvalues > RANK_TOLERANCE * np.max(eigenvalues, initial=0.0)
        T = Q @ (vectors[:, seen] / np.sqrt(eigenvalues[seen]))
        N = Q @ vectors[:, ~seen]
        V = problem.differences(problem.triples[:, [0, 2]])
        squares = np.sum(np.square(V @ N), axis=1)
        return cls(problem, T, N, squares > RANK_TOLERANCE * np.max(np.sum(V * V, axis=1)))

    @cached_property
    def points(self) -> FloatArray:
        """The coordinates T'(x_i - mean) of the points, centered so that margins lose no digits."""
        centered = self.problem.points - self.problem.points.mean(axis=0)
        return np.asarray(centered @ self.T)

    def margins(self, B: FloatArray) -> FloatArray:
        """The margin 1 + <W_t, B> of each triple that is not free."""
        gram = self.points @ B @ self.points.T
        norms = np.diag(gram)
        squares = (norms[:, None] + norms - 2.0 * gram).ravel()
        return np.asarray(1.0 + squares[self._near] - squares[self._far])

    def value(self, B: FloatArray) -> float:
        """The problem's value at `metric(B)`: (1 - mu) tr B + mu sum_t [1 + <W_t, B>]_+."""
        mu, hinges = self.problem.push_weight, np.maximum(self.margins(B), 0.0)
        return float((1.0 - mu) * np.trace(B) + mu * np.sum(hinges))

    def weighted_sum(self, z: FloatArray) -> FloatArray:
        """The sum of z_t W_t, as X'(Diag(w1) - w)X with w the weights of the pairs of points."""
        n = len(self.points)
        weights = np.bincount(self._near, z, n * n) - np.bincount(self._far, z, n * n)
        w = weights.reshape(n, n)
        w = w + w.T
        return np.asarray(self.points.T @ (w.sum(axis=1)[:, None] * self.points - w @ self.points))

    def lower_bound(self, z: FloatArray) -> float:
        """Bound the optimum from below, at multipliers of the triples that are not free.

        Which ones are free is decided by a tolerance; the proof does not rely on it.
        """
        multipliers = np.zeros(len(self.is_free))
        multipliers[~self.is_free] = z
        return self.problem.lower_bound(multipliers)

    def factor(self, B: FloatArray) -> FloatArray:
        """The factor L of T B T' + t N N', with the least t that meets the free triples."""
        L = self.T @ factor(B).T
        if not np.any(self.is_free):
            return L
        impostors = self.problem.differences(self.problem.triples[self.is_free][:, [0, 2]])
        needed = self.problem.margins(symmetrize(L @ L.T))[self.is_free]
        t = np.max(needed / np.sum(np.square(impostors @ self.N), axis=1), initial=0.0)
        return np.hstack([L, np.sqrt(t) * self.N])

    def metric(self, B: FloatArray) -> FloatArray:
        """The metric in the coordinates of the data: A = T B T' + t N N'."""
        L = self.factor(B)
        return symmetrize(L @ L.T)

    @cached_property
    def _near(self) -> IntArray:
        i, j, _ = self.problem.triples[~self.is_free].T
        return np.asarray(i * len(self.points) + j)

    @cached_property
    def _far(self) -> IntArray:
        i, _, impostor = self.problem.triples[~self.is_free].T
        return np.asarray(i * len(self.points) + impostor)


@dataclass(frozen=True, eq=False)
class RoundedObjective:
    """Round the corners of LMNN's hinges, so that L-BFGS can descend.

    (1 - mu) ||F||^2 + mu sum_t h_w(1 + <W_t, FF'>), h_w a hinge with a rounded corner.

    h_w(s) is the hinge [s]_+ with a parabola for |s| < w/2, as in Nesterov's smoothing (2005).

    Examples
    --------
    >>> problem = LMNNProblem.from_labels([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> objective = RoundedObjective(TargetCoordinates.of(problem), width=1.0)
    >>> objective.value_and_gradient(np.zeros((1, 1)))
    (1.0, array([[0.]]))
    """

    where: TargetCoordinates
    width: float

    def slopes(self, F: FloatArray) -> FloatArray:
        """The slopes h_w'(s_t) of the hinges, in [0, 1]; times mu, they are a dual point z."""
        return self._slopes(self.where.margins(F @ F.T))

    def value_and_gradient(self, F: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at F, for :func:`~seraph_cvx.baselines.rival.descend`."""
        mu, s = self.where.problem.push_weight, self.where.margins(F @ F.T)
        slopes = self._slopes(s)
        hinges = np.where(slopes < 1.0, self.width * slopes * slopes / 2.0, s)
        value = (1.0 - mu) * float(np.sum(F * F)) + mu * float(np.sum(hinges))
        return value, 2.0 * ((1.0 - mu) * F + mu * self.where.weighted_sum(slopes) @ F)

    def _slopes(self, margins: FloatArray) -> FloatArray:
        return np.clip(margins / self.width + 0.5, 0.0, 1.0)


def descend_sharpening(
    where: TargetCoordinates, tol: float, max_iter: int
) -> tuple[FloatArray, float, int]:
    """Minimize over B by L-BFGS on ever sharper corners.

    min_B of :class:`TargetCoordinates` by L-BFGS on :class:`RoundedObjective`, w -> 0.

    Returns B, the best proven lower bound, which decides when to stop, and the iterations.

    Examples
    --------
    >>> where = TargetCoordinates.of(LMNNProblem.from_labels([[0.0], [1.0], [3.0]], [0, 0, 1]))
    >>> B, bound, _ = descend_sharpening(where, 1e-6, 1000)
    >>> where.metric(B).round(4), round(bound, 4)
    (array([[0.3333]]), 0.3333)
    """
    mu, rank = where.problem.push_weight, where.T.shape[1]
    B, least, bound = np.zeros((rank, rank)), np.inf, 0.0
    if not rank or np.all(where.is_free):  # each margin left is 1, whatever the metric
        return B, where.lower_bound(np.full(int(np.sum(~where.is_free)), mu)), 0
    F = np.eye(rank) / np.sqrt(2.0 * np.sum(np.var(where.points, axis=0)))
    iterations, width = 0, 1.0
    while iterations < max_iter and width > SHARPEST:
        objective = RoundedObjective(where, width)
        F, steps = descend(objective.value_and_gradient, _refill(F), max_iter - iterations)
        iterations += steps
        value = where.problem.value_from_above(where.factor(F @ F.T))
        bound = max(bound, where.lower_bound(mu * objective.slopes(F)))
        if value < least:
            B, least = F @ F.T, value
        if least - bound <= tol * max(1.0, least) or not np.any(_refill(F)):  # F = 0 would stay 0
            break
        width *= SHARPEN
    return B, bound, iterations


def _refill(F: FloatArray) -> FloatArray:
    """A factor of FF' + REFILL ||F||^2 I: no gradient would restore a direction that F has lost."""
    eigenvalues, vectors = np.linalg.eigh(F @ F.T)
    return np.asarray(vectors * np.sqrt(eigenvalues + REFILL * eigenvalues[-1]))
