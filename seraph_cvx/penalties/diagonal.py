"""A diagonal metric: one weight for each feature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray
from .penalty import Constraint, DualTerms, Multiplier


class Diagonal(Constraint):
    """The constraint that the metric is diagonal: A_ij = 0 for i != j, a weight for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> Diagonal().value(np.eye(2)), Diagonal().value(np.ones((2, 2)))
    (0.0, inf)
    """

    formula = "A diagonal"
    is_diagonal = True
    grows_off_diagonal = True

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        i, j = np.triu_indices(A.shape[0], 1)
        return [A[i, j] == 0] if len(i) else []

    def conjugate(self, Z: FloatArray) -> float:
        """Zero where Z has a zero diagonal, and infinite elsewhere."""
        return math.inf if np.any(np.diag(Z)) else 0.0

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The projection: the diagonal part."""
        return np.diag(np.diag(Y))

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """A symmetric Z with a zero diagonal, whose conjugate is zero."""
        import cvxpy as cp

        Z = cp.Variable((n_features, n_features), symmetric=True, name="Z")
        return DualTerms(Z, 0.0, [cp.diag(Z) == 0])

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """Minus the gradient off the diagonal: only its diagonal is left to be PSD."""
        return -_off_diagonal(gradient)

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The matrix Z without its diagonal."""
        return Multiplier(_off_diagonal((Z + Z.T) / 2.0), 0.0)

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The diagonal factor with the diagonal of LL'."""
        return np.diag(np.sqrt(np.sum(L * L, axis=1)))

    def _contains(self, A: FloatArray) -> bool:
        return not np.any(_off_diagonal(A))

    def _is_proven_inside(self, L: FloatArray) -> bool:
        used = L != 0.0  # at most one entry in each row and column
        return bool(np.max(used.sum(axis=0), initial=0) <= 1 and np.max(used.sum(axis=1)) <= 1)

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """The diagonal of the pull."""
        return np.diag(np.diag(pull))

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclosures of Z and of its conjugate, which is zero."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        return ball_matrix(found.matrix), arb(0)

    def __repr__(self) -> str:
        return "Diagonal()"


def _off_diagonal(A: FloatArray) -> FloatArray:
    return np.asarray(A - np.diag(np.diag(A)))
