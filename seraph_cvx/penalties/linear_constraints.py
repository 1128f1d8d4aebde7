"""Linear constraints on the metric: bounds, equalities, zero patterns."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, IntArray, check_number, read_only
from ..numerics.psd_cone import scaled_factor, symmetrize
from ..proof.rounding import FEW_ROUNDINGS, at_most, gamma
from .penalty import Constraint, DualTerms, Multiplier, check_features, check_matrix

MOST_PROJECTIONS = 100
"""Projections in turn onto the constraints and the cone, at most: far more than sets need that meet
in more than their edges."""

NEARLY = 1e-6
"""A constraint whose slack is below this share of its size counts as active in a guess: what
solvers leave of one."""


class LinearConstraints(Constraint):
    """Linear constraints on the metric: <B_i, A> <= upper_i, or <B_i, A> = equal_i.

    A bound on the distance of two points is one (B = vv'), and so is a zero entry (B_ij = 1,
    equal = 0). For both kinds at once give two blocks.

    Parameters
    ----------
    matrices : (m, m) or (k, m, m) array_like
        B_i, symmetric, none of them zero.
    upper, equal : float or (k,) array_like
        t_i of the one kind or of the other.
    tolerance : float
        A computed matrix meets an equation only to rounding. So the block is, to be exact,
        <B_i, A> <= t_i + e_i, or |<B_i, A> - t_i| <= e_i, with e_i = tolerance * (|t_i| + ||B_i||);
        value, conjugate and certificate are those of this set.

    Examples
    --------
    >>> import numpy as np
    >>> v = np.array([1.0, -1.0])
    >>> near = LinearConstraints(np.outer(v, v), upper=2.0)  # d_A(x, y)^2 <= 2 for x - y = v
    >>> near.value(np.eye(2)), near.value(2.0 * np.eye(2))
    (0.0, inf)
    """

    def __init__(
        self,
        matrices: ArrayLike,
        *,
        upper: ArrayLike | None = None,
        equal: ArrayLike | None = None,
        tolerance: float = 1e-9,
    ) -> None:
        if (upper is None) == (equal is None):
            raise ValueError("Give either upper or equal; for both kinds, use two blocks.")
        given = np.array(matrices, dtype=np.float64)
        given = given[None] if given.ndim == 2 else given
        self.matrices = read_only(np.array([check_matrix(B, "matrices") for B in given]))
        self.is_equality = equal is not None
        self.formula = "<B_i, A> = t_i" if self.is_equality else "<B_i, A> <= t_i"
        bounds = np.array(equal if upper is None else upper, dtype=np.float64).ravel()
        if len(bounds) == 1:
            bounds = np.repeat(bounds, len(self.matrices))
        if len(bounds) != len(self.matrices):
            raise ValueError(
                f"{len(self.matrices)} matrices but {len(bounds)} bounds: give one for each."
            )
        if not np.all(np.isfinite(bounds)):
            raise ValueError("A bound is NaN or infinite: leave that constraint out.")
        if not np.all(np.any(self.matrices, axis=(1, 2))):
            raise ValueError("One of the matrices is zero: leave that constraint out.")
        self.bounds = read_only(bounds)
        self.tolerance = check_number(tolerance, "tolerance", 0.0, strict=True)
        self._rows = self.matrices.reshape(len(bounds), -1)
        self._rotation, self._triangle = np.linalg.qr(self._rows.T)  # B_i = rotation @ column i
        sizes = np.hypot.reduce(self._rows, axis=1)  # never overflows on the way
        self._tolerances = read_only(self.tolerance * (np.abs(bounds) + sizes))

    def for_points(self, points: FloatArray) -> Self:
        """The block itself, checked to have a row for each feature."""
        check_features(self, "matrices", points)
        return self

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraints in CVXPY."""
        import cvxpy as cp

        left = self._rows @ cp.vec(A, order="C")
        return [left == self.bounds] if self.is_equality else [left <= self.bounds]

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The projection onto the set of matrices that satisfy the constraints."""
        excess = self._rows @ np.ravel(Y) - self.bounds
        if not self.is_equality and np.all(excess <= 0.0):
            return Y
        active = np.arange(len(excess)) if self.is_equality else self._active(excess)
        back = np.linalg.lstsq(self._triangle[:, active].T, excess[active], rcond=None)[0]
        return np.asarray(Y - symmetrize((self._rotation @ back).reshape(Y.shape)))

    def _active(self, excess: FloatArray) -> IntArray:
        """Which bounds the projection meets with equality: those with a positive multiplier.

        The shortest D with <B_i, D> >= excess_i, whether or not the B_i are independent (Lawson and
        Hanson, Solving Least Squares Problems, chapter 23).
        """
        lengths = np.maximum(np.linalg.norm(self._triangle, axis=0), 1e-300)
        goal = excess / lengths
        columns = np.vstack([self._triangle / lengths, goal / np.max(np.abs(goal))])
        last = np.eye(1, len(columns), len(columns) - 1)[0]
        return np.flatnonzero(_nonnegative(columns, last) > 0.0)

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """The multiplier Z = sum_i nu_i B_i and its conjugate nu't, with new variables nu."""
        import cvxpy as cp

        nu = cp.Variable(len(self.bounds), nonneg=not self.is_equality, name="nu")
        Z = cp.reshape(self._rows.T @ nu, (n_features, n_features), order="C")
        return DualTerms(Z, self.bounds @ nu, [])

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """The multipliers of active constraints that make the gradient vanish along A, nearly."""
        sizes = np.abs(self.bounds) + np.abs(self._rows) @ np.ravel(np.abs(A))
        active = self.is_equality | (self._rows @ np.ravel(A) - self.bounds > -NEARLY * sizes)
        chosen = self.matrices[active]
        if not len(chosen):
            return np.zeros_like(A)
        L = scaled_factor(A)
        along = np.array([(B @ L).ravel() for B in chosen]).T
        target = -(gradient @ L).ravel()
        return np.asarray(np.tensordot(self._least_squares(along, target), chosen, 1))

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The combination of the B_i nearest to Z, and its conjugate."""
        nu = self.weights_of(Z)
        slack = gamma(len(nu) + FEW_ROUNDINGS) * (np.abs(nu) @ np.abs(self._rows))
        conjugate = at_most(*(nu * self.bounds), *(np.abs(nu) * self._tolerances))
        nearest = (nu @ self._rows).reshape(Z.shape)
        return Multiplier(nearest, conjugate, slack.reshape(Z.shape))

    def weights_of(self, Z: FloatArray) -> FloatArray:
        """The weights of the B_i in their combination nearest to Z."""
        return self._least_squares(self._triangle, self._rotation.T @ np.ravel(Z))

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """A factor near L that satisfies the constraints, by scaling it or by projections.

        The latter in turn onto set and cone; if these hardly meet, the last one may violate them.
        """
        for _ in range(MOST_PROJECTIONS):
            if self._is_proven_inside(L):
                break
            scaled = self._scaled(L)
            if self._is_proven_inside(scaled):
                return scaled
            projected = self.prox(L @ L.T, 1.0)
            if not np.all(np.isfinite(projected)):
                break
            L = scaled_factor(projected)
        return L

    def _scaled(self, L: FloatArray) -> FloatArray:
        """The factor L times the number at which the violated constraints hold, if there is one."""
        along = self._rows @ np.ravel(L @ L.T)
        violated = self._excess(L @ L.T) > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self.bounds[violated] / along[violated]
        share = float(np.min(shares, initial=np.inf))
        return L * math.sqrt(share) if 0.0 < share < math.inf else L

    def _contains(self, A: FloatArray) -> bool:
        """Whether no constraint is violated by more than its tolerance."""
        return bool(np.all(self._excess(A) <= self._tolerances))

    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether the same holds of LL' with all rounding errors."""
        size = np.abs(L) @ np.abs(L).T
        sizes = np.abs(self.bounds) + np.abs(self._rows) @ np.ravel(size)
        rounding = gamma(L.shape[1] + L.shape[0] ** 2 + FEW_ROUNDINGS) * sizes
        return bool(np.all(self._excess(L @ L.T) + 2.0 * rounding <= self._tolerances))

    def _least_squares(self, columns: FloatArray, target: FloatArray) -> FloatArray:
        """The least squares solution; for bounds, the nonnegative one."""
        if self.is_equality:
            return np.asarray(np.linalg.lstsq(columns, target, rcond=None)[0])
        return _nonnegative(columns, target)

    def _excess(self, A: FloatArray) -> FloatArray:
        """By how much each constraint is violated; negative where it is not."""
        off = self._rows @ np.ravel(A) - self.bounds
        return np.abs(off) if self.is_equality else off

    def __repr__(self) -> str:
        kind = "equal" if self.is_equality else "upper"
        return f"LinearConstraints({len(self.bounds)} matrices, {kind}=...)"


def _nonnegative(columns: FloatArray, target: FloatArray) -> FloatArray:
    """The nonnegative least squares solution."""
    try:
        return np.asarray(scipy.optimize.nnls(columns, target)[0])
    except (np.linalg.LinAlgError, RuntimeError):  # SciPy 1.13: columns are nearly dependent
        plain = np.linalg.lstsq(columns, target, rcond=None)[0]
        return np.asarray(np.maximum(plain, 0.0), dtype=np.float64)
