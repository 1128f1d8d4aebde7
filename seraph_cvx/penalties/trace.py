"""The trace penalty of (7) and (11), and a bound on the trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray, check_number
from ..numerics.rounding import UNIT, product_above
from .penalty import Constraint, DualTerms, LinearPenalty, Multiplier, square_above
from .regularizer import Regularizer


class Trace(LinearPenalty):
    """The paper's penalty on the rank of the metric: weight * tr(A), the lambda of (11).

    ``MStepObjective(trace_weight=...)`` is this block; given as one, it is added to that.

    Parameters
    ----------
    weight : float
        lambda >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> Trace(0.5).value(np.diag([1.0, 3.0]))
    2.0
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = check_number(weight, "weight", 0.0)

    def regularizer(self, points: FloatArray) -> Regularizer:
        """The block as a part of R: it is linear."""
        return Regularizer(self.weight, None)

    def _coefficients(self, n_features: int) -> FloatArray:
        return np.eye(n_features)


class TraceBound(Constraint):
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
    is_coercive = True
    refers_to_features = False

    def __init__(self, bound: float) -> None:
        self.weight = check_number(bound, "bound", 0.0, strict=True)

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraint in CVXPY."""
        import cvxpy as cp

        return [cp.trace(A) <= weight]

    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate nu * bound at Z = nu * I, nu >= 0; infinite elsewhere."""
        nu = float(np.mean(np.diag(Z)))
        fits = np.allclose(Z, nu * np.eye(len(Z)), rtol=0.0, atol=1e-12 * max(1.0, abs(nu)))
        return nu * self.weight if fits and nu >= 0.0 else math.inf

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

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The factor L, shrunk where the trace of LL' is above the bound."""
        trace = square_above(L)
        if trace <= self.weight:
            return L
        return np.asarray(L * (math.sqrt(self.weight / trace) * (1.0 - 8.0 * UNIT)))

    def _contains(self, A: FloatArray) -> bool:
        slack = 4.0 * len(A) * UNIT * float(np.sum(np.abs(np.diag(A))))
        return float(np.trace(A)) <= self.weight + slack

    def _is_proven_inside(self, L: FloatArray) -> bool:
        return square_above(L) <= self.weight

    def pull_at_zero(self, pull: FloatArray) -> FloatArray:
        """The pull itself: zero is inside the bound."""
        return pull

    def ball_terms(self, found: Multiplier) -> tuple[Any, Any]:
        """Enclose Z = nu * I and nu * bound."""
        from ..numerics.ball_arithmetic import arb, ball_matrix

        return ball_matrix(found.matrix), arb(found.matrix[0, 0]) * arb(self.weight)

    def _is_proven_in_balls(self, L: Any, L_doubles: FloatArray) -> bool:
        from ..numerics.ball_arithmetic import arb

        return bool((L.transpose() * L).trace() <= arb(self.weight))
