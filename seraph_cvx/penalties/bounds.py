"""Upper bounds on the metric: on its trace, and in the order of the PSD cone."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import project, symmetrize
from ..proof.rounding import FEW_ROUNDINGS, UNIT, gamma, product_above
from ..proof.verified_psd import is_proven_positive_definite
from .penalty import Constraint, DualTerms, Multiplier, check_features, check_matrix
from .products_above import inner_above, square_above

MARGINS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""Shares by which a matrix is moved into the cone until that is proven, one after the other:
from the rounding of a few features on, by ten."""

LEAST_NORMAL = float(np.finfo(np.float64).tiny)
"""An upper bound on what underflows in a row of LL'."""


class _Bound(Constraint):
    """A bounded set of metrics around zero."""

    is_coercive = True

    @abstractmethod
    def _gauge(self, L: FloatArray) -> float:
        """The least t such that LL' is in t times the set, nearly."""

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The factor L, shrunk until LL' is proven to be within the bound."""
        if self._is_proven_inside(L):
            return L
        gauge, margins = max(1.0, self._gauge(L)), (16.0 * UNIT, *MARGINS)
        shrunk = [np.asarray(L * math.sqrt((1.0 - margin) / gauge)) for margin in margins]
        return next(filter(self._is_proven_inside, shrunk), shrunk[-1])

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """The pull itself: zero is inside the bound."""
        return pull


class TraceBound(_Bound):
    """A bound on the trace of the metric: tr(A) <= bound.

    Parameters
    ----------
    bound : float
        t > 0.

    Examples
    --------
    >>> import numpy as np
    >>> TraceBound(3.0).value(np.eye(3)), TraceBound(2.0).value(np.eye(3))
    (0.0, inf)
    >>> TraceBound(2.0).prox(np.eye(4), 1.0).diagonal()
    array([0.5, 0.5, 0.5, 0.5])
    """

    formula = "tr(A) <= t"
    refers_to_features = False

    def __init__(self, bound: float) -> None:
        self.weight = check_number(bound, "bound", 0.0, strict=True)

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        import cvxpy as cp

        return [cp.trace(A) <= weight]

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The projection: the excess of the trace is taken off the diagonal evenly."""
        for _ in range(2):  # once more, for the rounding errors of a Y that is far off
            excess = max(0.0, float(np.trace(Y)) - self.weight)
            Y = Y - excess / len(Y) * np.eye(len(Y))
        return np.asarray(Y)

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """The multiplier Z = nu * I and its conjugate nu * bound, with a new variable nu >= 0."""
        import cvxpy as cp

        nu = cp.Variable(nonneg=True, name="nu")
        return DualTerms(nu * np.eye(n_features), weight * nu, [])

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """The least multiple of I that makes the gradient PSD."""
        lift = max(0.0, -float(np.linalg.eigvalsh(gradient)[0]))
        return np.asarray(lift * np.eye(len(A)))

    def absorb(self, Z: FloatArray, missing: FloatArray) -> FloatArray:
        """The sum of Z and nearly the least multiple of I that is not below `missing`."""
        lift = float(np.linalg.eigvalsh(missing)[-1]) * (1.0 + 1e-9)
        return np.asarray(Z + lift * np.eye(len(Z)))

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The multiple of I nearest to Z, and its conjugate."""
        nu = max(0.0, float(np.mean(np.diag(Z))))
        return Multiplier(nu * np.eye(len(Z)), product_above(nu, self.weight))

    def _gauge(self, L: FloatArray) -> float:
        """The trace relative to the bound."""
        return square_above(L) / self.weight

    def _contains(self, A: FloatArray) -> bool:
        """Whether the trace is within the bound, to rounding."""
        slack = 4.0 * len(A) * UNIT * float(np.sum(np.abs(np.diag(A))))
        return float(np.trace(A)) <= self.weight + slack

    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether the trace, rounded up, is within the bound."""
        return square_above(L) <= self.weight


class UpperBound(_Bound):
    """A bound on every distance: A <= bound, that is, bound - A is PSD.

    No direction is stretched beyond what the bound stretches it by.

    Parameters
    ----------
    bound : (m, m) array_like
        B, positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> UpperBound(np.eye(2)).value(np.diag([1.0, 0.5]))
    0.0
    >>> UpperBound(np.eye(2)).prox(np.diag([3.0, 0.5]), 1.0)
    array([[1. , 0. ],
           [0. , 0.5]])
    """

    formula = "A <= B"

    def __init__(self, bound: ArrayLike) -> None:
        self.bound = check_matrix(bound, "bound", positive_definite=True)
        self.upper_bound = self.bound

    def for_points(self, points: FloatArray) -> Self:
        """The block itself, checked to have a row for each feature."""
        check_features(self, "bound", points)
        return self

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        import cvxpy as cp

        return [cp.PSD(self.bound - A)]

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The projection: bound less the PSD part of bound - Y."""
        return np.asarray(self.bound - project(self.bound - Y))

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """A positive semidefinite Z and its conjugate <Z, bound>."""
        import cvxpy as cp

        Z = cp.Variable((n_features, n_features), PSD=True, name="Z")
        return DualTerms(Z, cp.sum(cp.multiply(self.bound, Z)), [])

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """What is negative in the gradient, in coordinates where the bound is I."""
        root = np.linalg.cholesky(self.bound)
        inverse = np.linalg.inv(root)
        return symmetrize(inverse.T @ project(-symmetrize(root.T @ gradient @ root)) @ inverse)

    def absorb(self, Z: FloatArray, missing: FloatArray) -> FloatArray:
        """The sum Z + `missing`, PSD as both are."""
        return np.asarray(Z + missing)

    def multiplier(self, Z: FloatArray) -> Multiplier | None:
        """A matrix near Z that is proven PSD, and its conjugate."""
        Z = project(symmetrize(Z))
        if not np.any(Z):
            return Multiplier(Z, 0.0)
        for margin in MARGINS:
            lifted = symmetrize(Z + margin * float(np.trace(Z)) * np.eye(len(Z)))
            if is_proven_positive_definite(lifted, np.zeros(len(Z))):
                return Multiplier(lifted, inner_above(lifted, self.bound))
        return None

    def _contains(self, A: FloatArray) -> bool:
        """Whether bound - A is PSD, to rounding."""
        return self._largest_share(A) <= 1.0 + 1e-12

    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether bound - LL' is proven positive definite."""
        size = np.abs(L)
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * np.sum(
            size @ size.T + np.abs(self.bound), axis=1
        )
        return is_proven_positive_definite(self.bound - L @ L.T, error + LEAST_NORMAL)

    def _gauge(self, L: FloatArray) -> float:
        """The largest eigenvalue of LL' relative to the bound."""
        return self._largest_share(L @ L.T)

    def _largest_share(self, A: FloatArray) -> float:
        """The largest eigenvalue of A in coordinates where the bound is I."""
        inverse = np.linalg.inv(np.linalg.cholesky(self.bound))
        return float(np.linalg.eigvalsh(symmetrize(inverse @ A @ inverse.T))[-1])

    def __repr__(self) -> str:
        return "UpperBound(...)"
