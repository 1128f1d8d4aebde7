"""An upper bound on the trace of the metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray, check_number
from ..proof.rounding import UNIT, product_above
from .penalty import Constraint, Multiplier
from .products_above import square_above

MARGINS = (16.0 * UNIT, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""Shares by which a trace is shrunk until it is proven to be within its bound, one after the other:
from the rounding of a few features on, by ten."""


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

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The projection: the excess of the trace is taken off the diagonal evenly."""
        for _ in range(2):  # once more, for the rounding errors of a Y that is far off
            excess = max(0.0, float(np.trace(Y)) - self.weight)
            Y = Y - excess / len(Y) * np.eye(len(Y))
        return Y

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """The least multiple of I that makes the gradient PSD."""
        lift = max(0.0, -float(np.linalg.eigvalsh(gradient)[0]))
        return lift * np.eye(len(A))

    def absorb(self, Z: FloatArray, missing: FloatArray) -> FloatArray:
        """The sum of Z and nearly the least multiple of I that is not below `missing`."""
        lift = float(np.linalg.eigvalsh(missing)[-1]) * (1.0 + 1e-9)
        return Z + lift * np.eye(len(Z))

    def multiplier(self, Z: FloatArray) -> Multiplier:
        """The multiple of I nearest to Z, and its conjugate."""
        nu = max(0.0, float(np.mean(np.diag(Z))))
        return Multiplier(nu * np.eye(len(Z)), product_above(nu, self.weight))

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """The factor L, shrunk until the trace of LL' is proven to be within the bound."""
        if self._is_proven_inside(L):
            return L
        gauge = max(1.0, square_above(L) / self.weight)
        shrunk = [L * math.sqrt((1.0 - margin) / gauge) for margin in MARGINS]
        return next(filter(self._is_proven_inside, shrunk), shrunk[-1])

    def _contains(self, A: FloatArray) -> bool:
        """Whether the trace is within the bound, to rounding."""
        slack = 4.0 * len(A) * UNIT * float(np.sum(np.abs(np.diag(A))))
        return float(np.trace(A)) <= self.weight + slack

    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether the trace, rounded up, is within the bound."""
        return square_above(L) <= self.weight
