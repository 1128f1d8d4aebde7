"""What acts on the entries off the diagonal: a penalty on their size, and a diagonal metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import project, symmetrize, to_unit_size
from ..proof.rounding import FEW_ROUNDINGS, gamma, product_above
from .penalty import Constraint, Multiplier, Penalty, conjugate_by_multiplier

FAINT = (1e-8, 1e-6, 1e-4, 1e-2)
"""Eigenvalues of a metric below one of these shares of the largest are taken for zero: all are
tried, and the best is taken."""

MOST_PROJECTIONS, SETTLED = 300, 1e-12
"""Projections that a guess takes at most, and the change relative to the weight at which it has
settled: below what a certificate allows for rounding."""


class _OffDiagonal(Penalty):
    """A penalty on entries off the diagonal: its conjugate is zero where |Z_ij| <= `_limit`."""

    def _limit(self) -> float:
        """The largest entry that a Z with a finite conjugate may have."""
        return math.inf

    def conjugate(self, Z: FloatArray) -> float:
        """Zero where |Z_ij| is at most the weight off a zero diagonal, and infinite elsewhere."""
        return conjugate_by_multiplier(self, Z)

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step: entries off the diagonal shrink by step * weight."""
        small = np.sign(Y) * np.maximum(np.abs(Y) - step * self._limit(), 0.0)
        np.fill_diagonal(small, np.diag(Y))
        return small

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The matrix Z cut off at the weight, with a zero diagonal."""
        cut = np.clip((Z + Z.T) / 2.0, -self._limit(), self._limit())
        return Multiplier(_off_diagonal(cut), 0.0)


class Sparse(_OffDiagonal):
    """A penalty on the size of the entries off the diagonal: weight * sum over i != j of |A_ij|.

    Parameters
    ----------
    weight : float
        rho > 0. Each unordered pair of features counts twice.

    Examples
    --------
    >>> import numpy as np
    >>> Sparse(0.5).value(np.array([[1.0, -2.0], [-2.0, 5.0]]))
    2.0
    >>> Sparse(0.5).prox(np.array([[1.0, -2.0], [-2.0, 5.0]]), 2.0)
    array([[ 1., -1.],
           [-1.,  5.]])
    """

    formula = "w sum_ij |A_ij|"
    is_sparse = True

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = check_number(weight, "weight", 0.0, strict=True)

    def _limit(self) -> float:
        """The weight."""
        return self.weight

    def value(self, A: FloatArray) -> float:
        """The penalty weight * sum_{i != j} |A_ij|."""
        return self.weight * float(np.sum(np.abs(_off_diagonal(A))))

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty in CVXPY."""
        import cvxpy as cp

        i, j = np.triu_indices(A.shape[0], 1)
        return weight * (2.0 * cp.sum(cp.abs(A[i, j]))) if len(i) else 0.0

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The weight times the sign of each entry off the diagonal."""
        return self.weight * _off_diagonal(np.sign(A))

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """A matrix Z for which the gradient plus Z is PSD and vanishes along A, nearly.

        A solver's A has the rank of the optimum only nearly: the rank that serves best is taken.
        """
        eigenvalues, vectors = np.linalg.eigh(A)
        largest = max(float(eigenvalues[-1]), np.finfo(np.float64).tiny)
        ranks = {int(np.sum(eigenvalues > faint * largest)) for faint in FAINT}
        found = [self._fitted(gradient, vectors[:, : len(A) - rank]) for rank in sorted(ranks)]
        trace = float(np.trace(A))

        def worth(Z: FloatArray) -> float:
            """About the gap that Z leaves."""
            total = gradient + Z
            least = float(np.linalg.eigvalsh(total)[0])
            return float(np.sum(total * A)) + 2.0 * max(0.0, -least) * trace

        return min(found, key=worth)

    def _fitted(self, gradient: FloatArray, Q: FloatArray) -> FloatArray:
        """The Z for which gradient + Z is nearest to the PSD matrices on the span of Q.

        By accelerated projected gradient steps: (G + Z) less its projection is the gradient of half
        the squared distance.
        """
        Z = self.multiplier(-gradient).matrix
        ahead, momentum = Z, 1.0
        for _ in range(MOST_PROJECTIONS):
            on_span = project(symmetrize(Q.T @ (gradient + ahead) @ Q))
            new = self.multiplier(Q @ on_span @ Q.T - gradient).matrix
            move = new - Z
            if float(np.sum((ahead - new) * move)) > 0.0:
                momentum = 1.0
            faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            ahead, momentum = new + ((momentum - 1.0) / faster) * move, faster
            Z = new
            if float(np.max(np.abs(move), initial=0.0)) <= SETTLED * self.weight:
                break
        return Z

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on the penalty at LL'."""
        L, exponent = to_unit_size(L)
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * (np.abs(L) @ np.abs(L).T)
        sizes = _off_diagonal(np.abs(L @ L.T) + error)
        slack = 1.0 + gamma(sizes.size + FEW_ROUNDINGS)
        return product_above(self.weight, float(np.sum(sizes)), slack, exponent=2 * exponent)


class Diagonal(_OffDiagonal, Constraint):
    """The constraint that the metric is diagonal: A_ij = 0 for i != j, a weight for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> Diagonal().value(np.eye(2)), Diagonal().value(np.ones((2, 2)))
    (0.0, inf)
    """

    formula = "A diagonal"
    is_diagonal = True

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        i, j = np.triu_indices(A.shape[0], 1)
        return [A[i, j] == 0] if len(i) else []

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """Minus the gradient off the diagonal: only its diagonal is left to be PSD."""
        return -_off_diagonal(gradient)

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The diagonal factor with the diagonal of LL'."""
        return np.diag(np.sqrt(np.sum(L * L, axis=1)))

    def _contains(self, A: FloatArray) -> bool:
        """Whether A is diagonal."""
        return not np.any(_off_diagonal(A))

    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether L has at most one entry in each row and column: LL' is diagonal."""
        used = L != 0.0
        return bool(np.max(used.sum(axis=0), initial=0) <= 1 and np.max(used.sum(axis=1)) <= 1)

    def __repr__(self) -> str:
        return "Diagonal()"


def _off_diagonal(A: FloatArray) -> FloatArray:
    """The matrix with zeros on its diagonal."""
    return A - np.diag(np.diag(A))
