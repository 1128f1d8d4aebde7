"""Smooth penalties on the distance to a prior metric: quadratic, and ITML's LogDet divergence."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import is_clearly_definite, symmetrize
from ..proof.rounding import FEW_ROUNDINGS, UNIT, at_most, gamma
from ..proof.verified_psd import log_determinant_bounds
from .penalty import Multiplier, Penalty, TermPoint, check_matrix
from .products_above import inner_above, square_above


class PriorPenalty(Penalty):
    """A penalty on the distance to a prior metric."""

    is_smooth = True
    is_coercive = True
    _needs_definite_prior = False

    def __init__(self, weight: float = 1.0, prior: ArrayLike | None = None) -> None:
        self.weight = check_number(weight, "weight", 0.0, strict=True)
        self.prior = None
        if prior is not None:
            self.prior = check_matrix(prior, "prior", positive_definite=self._needs_definite_prior)
        self.refers_to_features = prior is not None

    def for_points(self, points: FloatArray) -> Self:
        """The block itself, its prior checked to have a row for each feature."""
        m = points.shape[1]
        if self.prior is not None and len(self.prior) != m:
            k = len(self.prior)
            raise ValueError(f"prior is {k} x {k}, but the points have {m} features.")
        return self

    def absorb(self, Z: FloatArray, missing: FloatArray) -> FloatArray:
        """The sum of Z and `missing`."""
        return Z + missing

    def __repr__(self) -> str:
        return f"{self.name}({self.weight:g}{'' if self.prior is None else ', prior=...'})"


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
        """The penalty; see the class."""
        return self.weight * float(np.sum(np.square(A - self._matrix(len(A))))) / 2

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty in CVXPY."""
        import cvxpy as cp

        return weight * (cp.sum_squares(A - self._matrix(A.shape[0])) / 2)

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate <Z, prior> + ||Z||_F^2 / (2 weight)."""
        squared = float(np.sum(np.square(Z))) / self.weight
        return float(np.sum(Z * self._matrix(len(Z)))) + squared / 2

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The gradient, weight * (A - prior)."""
        return self.weight * (A - self._matrix(len(A)))

    def at(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives."""
        return TermPoint(self.value(A), self.subgradient(A), lambda D: self.weight * D)

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step, (Y + step * weight * prior) / (1 + step * weight)."""
        share = step * self.weight
        return (Y + share * self._matrix(len(Y))) / (1.0 + share)

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The matrix Z itself, with an upper bound on its conjugate."""
        Z = symmetrize(Z)
        half = square_above(Z, 0.5 * (1.0 + 4.0 * UNIT) / self.weight)
        return Multiplier(Z, at_most(inner_above(Z, self._matrix(len(Z))), half))

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on weight/2 * ||LL' - prior||_F^2."""
        prior, size = self._matrix(len(L)), np.abs(L)
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * (size @ size.T + np.abs(prior))
        return square_above(np.abs(L @ L.T - prior) + error, 0.5 * self.weight)

    def _matrix(self, n_features: int) -> FloatArray:
        """The prior."""
        return np.zeros((n_features, n_features)) if self.prior is None else self.prior


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

    def __init__(self, weight: float = 1.0, prior: ArrayLike | None = None) -> None:
        super().__init__(weight, prior)
        self._inverse = None if self.prior is None else _inverse(self.prior)

    def value(self, A: FloatArray) -> float:
        """The divergence; see the class. Infinite where A is not positive definite."""
        Q = self.inverse_prior(len(A))
        return self.weight * (float(np.sum(Q * A)) - _log_det(A) - (_log_det(Q) + len(A)))

    def expression(self, A: Any, weight: Any) -> Any:
        """The divergence in CVXPY."""
        import cvxpy as cp

        Q = self.inverse_prior(A.shape[0])
        constant = _log_det(Q) + A.shape[0]
        return weight * (cp.sum(cp.multiply(Q, A)) - cp.log_det(A) - constant)

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate weight * [log det Q - log det(Q - Z / weight)]."""
        Q = self.inverse_prior(len(Z))
        return self.weight * (_log_det(Q) - _log_det(Q - Z / self.weight))

    def subgradient(self, A: FloatArray) -> FloatArray:
        """The gradient, weight * (Q - A^{-1}), at a positive definite A."""
        return self.at(A).gradient

    def at(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives; infinite if A is numerically singular."""
        value, g = self.value(A), self.weight
        if not math.isfinite(value) or not is_clearly_definite(A):
            return TermPoint(math.inf, np.zeros_like(A), lambda D: D)
        inverse = _inverse(A)
        gradient = g * (self.inverse_prior(len(A)) - inverse)
        return TermPoint(value, gradient, lambda D: g * inverse @ D @ inverse)

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step, on the eigenvalues w of Y - step * weight * Q.

        (w + sqrt(w^2 + 4 step weight)) / 2.
        """
        share = step * self.weight
        w, vectors = np.linalg.eigh(symmetrize(Y - share * self.inverse_prior(len(Y))))
        root = np.sqrt(w * w + 4.0 * share)
        moved = np.where(w > 0.0, (w + root) / 2.0, 2.0 * share / (root - w))
        return symmetrize((vectors * moved) @ vectors.T)

    def multiplier(self, Z: FloatArray) -> Multiplier | None:
        """The matrix Z, with an upper bound on its conjugate; None where that is infinite."""
        Z = symmetrize(Z)
        Q, scaled = self.inverse_prior(len(Z)), Z / self.weight
        below = log_determinant_bounds(Q - scaled, 4.0 * gamma(2) * (np.abs(Q) + np.abs(scaled)))
        if below is None:
            return None
        above = _log_det_bounds(Q)[1]
        return Multiplier(Z, at_most(self.weight * above, -self.weight * below[0]))

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on the divergence at LL'; infinite where that is not positive definite."""
        size, A, Q = np.abs(L), symmetrize(L @ L.T), self.inverse_prior(len(L))
        error = gamma(L.shape[1] + FEW_ROUNDINGS) * (size @ size.T)
        found = log_determinant_bounds(A, error) if L.shape[1] >= len(L) else None
        if found is None:
            return math.inf
        linear = inner_above(Q, A), inner_above(np.abs(Q), error)
        terms = *linear, -found[0], -_log_det_bounds(Q)[0], -float(len(L))
        return at_most(*(self.weight * term for term in terms))

    def inverse_prior(self, n_features: int) -> FloatArray:
        """Q, the inverse of the prior."""
        return np.eye(n_features) if self._inverse is None else self._inverse


def _log_det(A: FloatArray) -> float:
    """The logarithm of the determinant; minus infinity where A is not positive definite."""
    try:
        return 2.0 * float(np.sum(np.log(np.diag(np.linalg.cholesky(A)))))
    except np.linalg.LinAlgError:
        return -math.inf


def _log_det_bounds(Q: FloatArray) -> tuple[float, float]:
    """Bounds on log det Q; infinite ones where Q is not proven positive definite."""
    return log_determinant_bounds(Q, np.zeros_like(Q)) or (-math.inf, math.inf)


def _inverse(A: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix, whatever the scales of its rows."""
    W = np.linalg.inv(np.linalg.cholesky(A))
    return symmetrize(W.T @ W)
