"""An upper bound on the metric in the order of the PSD cone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize
from ..numerics.rounding import FEW_ROUNDINGS, gamma
from ..numerics.verified_psd import is_proven_positive_definite
from .penalty import Constraint, DualTerms, Multiplier, check_matrix, inner_above

MARGINS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""Shares by which a matrix is moved into the cone until that is proven, one after the other."""


LEAST_NORMAL = float(np.finfo(np.float64).tiny)
"""An upper bound on what underflows in a row of LL'."""


class UpperBound(Constraint):
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
    is_coercive = True
    _own_matrices = ("bound",)

    def __init__(self, bound: ArrayLike) -> None:
        self.bound = check_matrix(bound, "bound", positive_definite=True)
        self.upper_bound = self.bound

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        import cvxpy as cp

        return [cp.PSD(self.bound - A)]

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate <Z, bound> where Z is PSD; infinite elsewhere."""
        eigenvalues = np.linalg.eigvalsh(symmetrize(Z))
        if float(eigenvalues[0]) < -1e-12 * max(1.0, float(eigenvalues[-1])):
            return math.inf
        return float(np.sum(Z * self.bound))

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
        root, inverse = self._roots
        negative = project(-symmetrize(root @ gradient @ root))
        return symmetrize(inverse @ negative @ inverse)

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

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The factor L, shrunk until LL' is proven to be within the bound."""
        largest = self._largest_share(L @ L.T)
        if largest < 1.0 and self.value_above(L) == 0.0:
            return L
        for margin in MARGINS:
            smaller = np.asarray(L * math.sqrt((1.0 - margin) / max(largest, 1.0)))
            if self.value_above(smaller) == 0.0:
                return smaller
        return smaller

    def _contains(self, A: FloatArray) -> bool:
        return self._largest_share(A) <= 1.0 + 1e-12

    def _is_proven_inside(self, L: FloatArray) -> bool:
        size = np.abs(L)
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * np.sum(
            size @ size.T + np.abs(self.bound), axis=1
        )
        return is_proven_positive_definite(self.bound - L @ L.T, error + LEAST_NORMAL)

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """The pull itself: zero is inside the bound."""
        return pull

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclose Z and <Z, bound>."""
        from ..numerics.ball_arithmetic import ball_matrix

        Z = ball_matrix(found.matrix)
        return Z, (Z * ball_matrix(self.bound)).trace()

    def _is_proven_in_balls(self, L: Any, L_doubles: FloatArray) -> bool:
        from ..numerics.ball_arithmetic import ball_matrix, is_proven_psd

        return is_proven_psd(ball_matrix(self.bound) - L * L.transpose())

    @property
    def _roots(self) -> tuple[FloatArray, FloatArray]:
        """The roots of the bound and of its inverse."""
        eigenvalues, vectors = np.linalg.eigh(self.bound)
        root = (vectors * np.sqrt(eigenvalues)) @ vectors.T
        return root, (vectors / np.sqrt(eigenvalues)) @ vectors.T

    def _largest_share(self, A: FloatArray) -> float:
        """The largest eigenvalue of A in coordinates where the bound is I."""
        inverse = self._roots[1]
        return float(np.linalg.eigvalsh(symmetrize(inverse @ A @ inverse))[-1])

    def __repr__(self) -> str:
        return "UpperBound(...)"
