"""A quadratic penalty on the distance to a prior metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..numerics.rounding import FEW_ROUNDINGS, UNIT, at_most, gamma
from .penalty import DualTerms, Multiplier, PriorPenalty, TermPoint, inner_above, square_above


class Ridge(PriorPenalty):
    """A quadratic pull toward a prior metric: weight/2 * ||A - prior||_F^2.

    It is smooth and strongly convex, so the metric is unique whatever the trace weight.

    Parameters
    ----------
    weight : float
        rho > 0.
    prior : (m, m) array_like, optional
        A0, symmetric; by default zero.

    Examples
    --------
    >>> import numpy as np
    >>> Ridge(2.0, prior=np.eye(2)).value(np.zeros((2, 2)))
    2.0
    >>> Ridge(2.0).conjugate(np.eye(2))
    0.5
    """

    formula = "w/2 ||A - prior||^2"

    def value(self, A: FloatArray) -> float:
        """The penalty weight/2 * ||A - prior||_F^2."""
        return 0.5 * self.weight * float(np.sum(np.square(A - self._prior(len(A)))))

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty in CVXPY."""
        import cvxpy as cp

        return weight * (0.5 * cp.sum_squares(A - self._prior(A.shape[0])))

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The gradient, weight * (A - prior)."""
        return np.asarray(self.weight * (A - self._prior(len(A))))

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate <Z, prior> + ||Z||_F^2 / (2 weight), finite everywhere."""
        linear = float(np.sum(Z * self._prior(len(Z))))
        return linear + float(np.sum(Z * Z)) / (2.0 * self.weight)

    def at(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives."""
        return TermPoint(self.value(A), self.subgradient(A), lambda D: self.weight * D)

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step, (Y + step * weight * prior) / (1 + step * weight)."""
        share = step * self.weight
        return np.asarray((Y + share * self._prior(len(Y))) / (1.0 + share))

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """The multiplier Z = weight * U and its conjugate weight * (<U, prior> + ||U||^2 / 2)."""
        import cvxpy as cp

        U = cp.Variable((n_features, n_features), symmetric=True, name="U")
        linear = cp.sum(cp.multiply(self._prior(n_features), U))
        return DualTerms(weight * U, weight * (linear + 0.5 * cp.sum_squares(U)), [])

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The matrix Z itself, with an upper bound on its conjugate."""
        Z = symmetrize(Z)
        half = square_above(Z, 0.5 * (1.0 + 4.0 * UNIT) / self.weight)
        return Multiplier(Z, at_most(inner_above(Z, self._prior(len(Z))), half))

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on weight/2 * ||LL' - prior||_F^2."""
        prior, size = self._prior(len(L)), np.abs(L)
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * (size @ size.T + np.abs(prior))
        return square_above(np.abs(L @ L.T - prior) + error, 0.5 * self.weight)

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """The pull plus weight * prior: minus the gradient at zero."""
        return np.asarray(pull + self.weight * self._prior(len(pull)))

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclose Z and its conjugate."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        Z, prior = ball_matrix(found.matrix), ball_matrix(self._prior(len(found.matrix)))
        return Z, (Z * prior).trace() + (Z * Z).trace() / (2 * arb(self.weight))

    def ball_value(self, L: Any, L_doubles: FloatArray) -> Any:
        """Enclose weight/2 * ||LL' - prior||_F^2."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        off = L * L.transpose() - ball_matrix(self._prior(len(L_doubles)))
        return arb(self.weight) / 2 * (off * off).trace()

    def _prior(self, n_features: int) -> FloatArray:
        return np.zeros((n_features, n_features)) if self.prior is None else self.prior
