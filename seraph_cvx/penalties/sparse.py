"""A penalty on the entries off the diagonal, which makes many of them zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import project, symmetrize
from ..numerics.rounding import FEW_ROUNDINGS, gamma, product_above
from .penalty import DualTerms, Multiplier, Penalty, gram_above

FAINT = (1e-8, 1e-6, 1e-4, 1e-2)
"""Eigenvalues of a metric below one of these shares of the largest are taken for zero."""

MOST_PROJECTIONS, SETTLED = 300, 1e-12
"""Projections that a guess takes at most, and the change at which it has settled."""


class Sparse(Penalty):
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
    makes_zeros = True
    grows_off_diagonal = True

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = check_number(weight, "weight", 0.0, strict=True)

    def value(self, A: FloatArray) -> float:
        """The penalty weight * sum_{i != j} |A_ij|."""
        return self.weight * float(np.sum(np.abs(A - np.diag(np.diag(A)))))

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty in CVXPY."""
        import cvxpy as cp

        i, j = np.triu_indices(A.shape[0], 1)
        return weight * (2.0 * cp.sum(cp.abs(A[i, j]))) if len(i) else 0.0

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The weight times the sign of each entry off the diagonal."""
        Z = self.weight * np.sign(A)
        np.fill_diagonal(Z, 0.0)
        return np.asarray(Z)

    def conjugate(self, Z: FloatArray) -> float:
        """Zero where |Z_ij| <= weight off a zero diagonal, and infinite elsewhere."""
        if np.any(np.diag(Z)) or np.any(np.abs(Z) > self.weight):
            return math.inf
        return 0.0

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step: entries off the diagonal shrink by step * weight."""
        small = np.sign(Y) * np.maximum(np.abs(Y) - step * self.weight, 0.0)
        np.fill_diagonal(small, np.diag(Y))
        return np.asarray(small)

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """A symmetric Z with |Z_ij| <= weight off a zero diagonal; its conjugate is zero."""
        import cvxpy as cp

        Z = cp.Variable((n_features, n_features), symmetric=True, name="Z")
        return DualTerms(Z, 0.0, [cp.abs(Z) <= weight, cp.diag(Z) == 0])

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

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The matrix Z cut off at the weight, with a zero diagonal."""
        cut = np.clip((Z + Z.T) / 2.0, -self.weight, self.weight)
        np.fill_diagonal(cut, 0.0)
        return Multiplier(cut, 0.0)

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on the penalty at LL'."""
        gram, error, exponent = gram_above(L)
        sizes = np.abs(gram) + error
        np.fill_diagonal(sizes, 0.0)
        slack = 1.0 + gamma(sizes.size + FEW_ROUNDINGS)
        return product_above(self.weight, float(np.sum(sizes)), slack, exponent=exponent)

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclosures of Z and of its conjugate, which is zero."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        return ball_matrix(found.matrix), arb(0)

    def ball_value(self, L: Any, L_doubles: FloatArray) -> Any:
        """Enclose the penalty at LL'."""
        from ..numerics.ball_arithmetic import arb

        A = (L * L.transpose()).table()
        entries = (abs(x) for i, row in enumerate(A) for j, x in enumerate(row) if i != j)
        return arb(self.weight) * sum(entries, arb(0))
