"""Formulas of penalties, written once for arrays, CVXPY and balls; upper bounds on products."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import to_unit_size
from ..numerics.rounding import FEW_ROUNDINGS, at_most, gamma, product_above
from .penalty import DualTerms, Multiplier, Penalty


class Algebra(NamedTuple):
    """The functions that a formula of symmetric matrices is made of."""

    constant: Callable[[FloatArray], Any]  # an array as a matrix of this algebra
    inner: Callable[[Any, Any], Any]
    squares: Callable[[Any], Any]
    log_det: Callable[[Any], Any]


def _log_det(A: FloatArray) -> float:
    """The logarithm of the determinant; minus infinity where A is not positive definite."""
    try:
        return 2.0 * float(np.sum(np.log(np.diag(np.linalg.cholesky(A)))))
    except np.linalg.LinAlgError:
        return -math.inf


def _inner(X: FloatArray, Y: FloatArray) -> float:
    return float(np.sum(X * Y))


ARRAYS = Algebra(np.asarray, _inner, lambda X: _inner(X, X), _log_det)


def cvxpy_algebra() -> Algebra:
    """The functions for expressions of CVXPY."""
    import cvxpy as cp

    return Algebra(np.asarray, lambda X, Y: cp.sum(cp.multiply(X, Y)), cp.sum_squares, cp.log_det)


def ball_algebra() -> Algebra:
    """The functions for matrices of balls."""
    from ..numerics.ball_arithmetic import ball_matrix

    return Algebra(
        ball_matrix,
        lambda X, Y: (X * Y).trace(),
        lambda X: (X * X).trace(),
        lambda X: X.det().log(),
    )


class FormulaPenalty(Penalty):
    """A smooth penalty weight * p(A) whose formula holds a matrix T."""

    is_smooth = True

    def value(self, A: FloatArray) -> float:
        """The penalty; see the class."""
        return self.weight * float(self._formula(ARRAYS, A, self._matrix(len(A))))

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty in CVXPY."""
        return weight * self._formula(cvxpy_algebra(), A, self._matrix(A.shape[0]))

    @abstractmethod
    def _formula(self, algebra: Algebra, A: Any, T: FloatArray) -> Any:
        """The penalty p(A) of weight 1."""

    @abstractmethod
    def _matrix(self, n_features: int) -> FloatArray:
        """The matrix T."""


class FormulaWithConjugate(FormulaPenalty):
    """A smooth penalty weight * p(A) with a formula for its conjugate too."""

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate weight * p*(Z / weight)."""
        T = self._matrix(len(Z))
        return self.weight * float(self._conjugate(ARRAYS, Z / self.weight, T))

    def dual_terms(self, n_features: int, weight: Any) -> DualTerms:
        """The multiplier Z = weight * U and its conjugate weight * p*(U), with a new variable U."""
        import cvxpy as cp

        U = cp.Variable((n_features, n_features), symmetric=True, name="U")
        conjugate = self._conjugate(cvxpy_algebra(), U, self._matrix(n_features))
        return DualTerms(weight * U, weight * conjugate, [])

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclose Z and its conjugate."""
        from ..numerics.ball_arithmetic import arb

        balls, weight = ball_algebra(), arb(self.weight)
        Z, T = balls.constant(found.matrix), self._matrix(len(found.matrix))
        return Z, weight * self._conjugate(balls, Z / weight, T)

    def ball_value(self, L: Any, L_doubles: FloatArray) -> Any:
        """Enclose the penalty at LL'."""
        from ..numerics.ball_arithmetic import arb

        T = self._matrix(len(L_doubles))
        return arb(self.weight) * self._formula(ball_algebra(), L * L.transpose(), T)

    @abstractmethod
    def _conjugate(self, algebra: Algebra, U: Any, T: FloatArray) -> Any:
        """The conjugate p*(U) of the penalty of weight 1."""


def inner_above(X: FloatArray, Y: FloatArray) -> float:
    """An upper bound on <X, Y> for matrices of doubles."""
    (X, of_X), (Y, of_Y) = to_unit_size(X), to_unit_size(Y)
    size = float(np.sum(np.abs(X) * np.abs(Y)))
    slack = gamma(X.size + FEW_ROUNDINGS)
    bound = at_most(float(np.sum(X * Y)), slack * (1.0 + slack) * size)
    if bound >= 0.0:
        return product_above(bound, exponent=of_X + of_Y)
    return math.nextafter(float(np.ldexp(bound, of_X + of_Y)), math.inf)


def square_above(X: FloatArray, weight: float = 1.0) -> float:
    """An upper bound on weight * ||X||_F^2."""
    X, exponent = to_unit_size(X)
    total = float(np.sum(X * X))
    return product_above(total, 1.0 + gamma(X.size + FEW_ROUNDINGS), weight, exponent=2 * exponent)


def gram_above(L: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """LL' and a bound on its rounding errors, both divided by 2^e, and e."""
    L, exponent = to_unit_size(L)
    size = np.abs(L)
    return L @ L.T, gamma(L.shape[1] + FEW_ROUNDINGS) * (size @ size.T), 2 * exponent
