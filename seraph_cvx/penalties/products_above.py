"""Upper bounds on products of matrices of doubles, rounding included."""

from __future__ import annotations

import math

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import to_unit_size
from ..proof.rounding import FEW_ROUNDINGS, at_most, gamma, product_above


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
