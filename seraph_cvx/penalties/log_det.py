"""ITML's penalty: the LogDet divergence from a prior metric."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..numerics.rounding import FEW_ROUNDINGS, at_most, gamma
from ..numerics.verified_psd import log_determinant_bounds
from .penalty import DualTerms, Multiplier, PriorPenalty, TermPoint, inner_above


class LogDet(PriorPenalty):
    """The LogDet divergence from a prior metric: weight * [tr(A Q) - log det(A Q) - m].

    Q is the inverse of the prior A0. It is ITML's regularizer; it keeps the metric positive
    definite.

    Parameters
    ----------
    weight : float
        g > 0.
    prior : (m, m) array_like, optional
        A0, positive definite; by default I. The doubles of its inverse are taken as exact.

    Examples
    --------
    >>> import numpy as np
    >>> round(LogDet(2.0).value(np.diag([1.0, 0.5])), 6)  # 2 (0.5 - log 0.5 - 1)
    0.386294
    """

    formula = "w LogDet(A, prior)"
    _needs_definite_prior = True

    def value(self, A: FloatArray) -> float:
        """The divergence; infinite where A is not positive definite."""
        F = _cholesky(A)
        if F is None:
            return math.inf
        Q = self._inverse(len(A))
        log_det = 2.0 * float(np.sum(np.log(np.diag(F))))
        return self.weight * (float(np.sum(Q * A)) - log_det - self._log_det(len(A)) - len(A))

    def expression(self, A: Any, weight: Any) -> Any:
        """The divergence in CVXPY."""
        import cvxpy as cp

        m = A.shape[0]
        linear = cp.sum(cp.multiply(self._inverse(m), A))
        return weight * (linear - cp.log_det(A) - (self._log_det(m) + m))

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The gradient, weight * (Q - A^{-1}), at a positive definite A."""
        return self.at(A).gradient

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate weight * [log det Q - log det(Q - Z/weight)], where that is finite."""
        F = _cholesky(self._inverse(len(Z)) - Z / self.weight)
        if F is None:
            return math.inf
        return self.weight * (self._log_det(len(Z)) - 2.0 * float(np.sum(np.log(np.diag(F)))))

    def at(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives."""
        value, g = self.value(A), self.weight
        if not math.isfinite(value):
            return TermPoint(math.inf, np.zeros_like(A), lambda D: D)
        inverse = _inverse(A)
        gradient = g * (self._inverse(len(A)) - inverse)
        return TermPoint(value, gradient, lambda D: g * inverse @ D @ inverse)

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step, on the eigenvalues w of Y - step * weight * Q.

        (w + sqrt(w^2 + 4 step weight)) / 2.
        """
        share = step * self.weight
        w, vectors = np.linalg.eigh(symmetrize(Y - share * self._inverse(len(Y))))
        root = np.sqrt(w * w + 4.0 * share)
        moved = np.where(w > 0.0, (w + root) / 2.0, 2.0 * share / (root - w))
        return symmetrize((vectors * moved) @ vectors.T)

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """The multiplier Z = weight * U and its conjugate weight * [log det Q - log det(Q - U)]."""
        import cvxpy as cp

        U = cp.Variable((n_features, n_features), symmetric=True, name="U")
        Q = self._inverse(n_features)
        return DualTerms(weight * U, weight * (self._log_det(n_features) - cp.log_det(Q - U)), [])

    def multiplier(self, Z: FloatArray) -> Multiplier | None:
        """The matrix Z, with an upper bound on its conjugate; None where that is infinite."""
        Z = symmetrize(Z)
        Q, scaled = self._inverse(len(Z)), Z / self.weight
        below = log_determinant_bounds(Q - scaled, 4.0 * gamma(2) * (np.abs(Q) + np.abs(scaled)))
        if below is None:
            return None
        above = self._log_det_bounds(len(Z))[1]
        return Multiplier(Z, at_most(self.weight * above, -self.weight * below[0]))

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on the divergence at LL'; infinite where that is not positive definite."""
        m, size = len(L), np.abs(L)
        if L.shape[1] < m:
            return math.inf
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * (size @ size.T)
        found = log_determinant_bounds(symmetrize(L @ L.T), error)
        if found is None:
            return math.inf
        Q = self._inverse(m)
        linear = [inner_above(Q, symmetrize(L @ L.T)), inner_above(np.abs(Q), error)]
        terms = [*linear, -found[0], -self._log_det_bounds(m)[0], -float(m)]
        return at_most(*(self.weight * term for term in terms))

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """Infinite: the divergence of zero is."""
        return np.full_like(pull, math.inf)

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclose Z and its conjugate."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        Z, Q, g = ball_matrix(found.matrix), self._ball_inverse(len(found.matrix)), arb(self.weight)
        return Z, g * (Q.det().log() - (Q - Z / g).det().log())

    def ball_value(self, L: Any, L_doubles: FloatArray) -> Any:
        """Enclose the divergence at LL'."""
        from ..numerics.ball_arithmetic import arb

        A, Q = L * L.transpose(), self._ball_inverse(len(L_doubles))
        return arb(self.weight) * ((A * Q).trace() - A.det().log() - Q.det().log() - len(L_doubles))

    def _inverse(self, n_features: int) -> FloatArray:
        return np.eye(n_features) if self._given_inverse is None else self._given_inverse

    @cached_property
    def _given_inverse(self) -> FloatArray | None:
        return None if self.prior is None else _inverse(self.prior)

    def _log_det(self, n_features: int) -> float:
        """The logarithm of the determinant of Q."""
        return float(np.linalg.slogdet(self._inverse(n_features))[1])

    def _log_det_bounds(self, n_features: int) -> tuple[float, float]:
        found = log_determinant_bounds(self._inverse(n_features), np.zeros((n_features,) * 2))
        return (-math.inf, math.inf) if found is None else found

    def _ball_inverse(self, n_features: int) -> Any:
        from ..numerics.ball_arithmetic import ball_matrix

        return ball_matrix(self._inverse(n_features))


def _cholesky(A: FloatArray) -> FloatArray | None:
    """A Cholesky factor; None where A is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(A))
    except np.linalg.LinAlgError:
        return None


def _inverse(A: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix, whatever the scales of its rows."""
    W = np.asarray(np.linalg.inv(np.linalg.cholesky(A)))
    return symmetrize(W.T @ W)
