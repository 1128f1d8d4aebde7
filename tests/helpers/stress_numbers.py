"""Numbers of the judge: extended precision, balls, and small matrices of either."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat

EXTENDED = np.longdouble
UNIT = float(np.finfo(EXTENDED).eps)
PRECISIONS = (400, 1200, 4000)
"""Bits of the balls, more where the fewer do not decide."""


def balls(values):
    """The very numbers of a matrix, of doubles or in extended precision, as a matrix of balls."""
    values = np.asarray(values, dtype=EXTENDED)
    with np.errstate(over="ignore"):
        high = values.astype(np.float64)
    is_double = np.isfinite(high) & ((np.abs(high) > 1e-280) | (values == high))
    if not np.all(is_double):  # beyond the range of doubles
        return arb_mat(*values.shape, [wide_ball(x) for x in values.ravel()])
    matrix = arb_mat(*high.shape, high.ravel().tolist())
    low = (values - high).astype(np.float64)
    return matrix + arb_mat(*low.shape, low.ravel().tolist()) if np.any(low) else matrix


def wide_ball(x):
    """A number in extended precision, of any exponent, as a ball."""
    mantissa, exponent = np.frexp(EXTENDED(x))
    high = float(mantissa)
    return (arb(high) + arb(float(mantissa - high))) * arb(2) ** int(exponent)


def ball(x):
    """A double as a ball, infinite ones too."""
    return arb(x) if np.isfinite(x) else arb(str(x))


def softplus(t):
    """log(1 + e^t) in floating point."""
    return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))


def sigmoid(t):
    """1 / (1 + e^{-t}) in floating point."""
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1, small) / (1 + small)


def ball_softplus(t):
    """log(1 + e^t) as a ball, sharp for any t."""
    return t + (-t).exp().log1p() if t.mid() > 0 else t.exp().log1p()


def ball_sigmoid(t):
    """1 / (1 + e^{-t}) as a ball, sharp for any t."""
    if t.mid() >= 0:
        return 1 / (1 + (-t).exp())
    small = t.exp()
    return small / (1 + small)


def is_positive_definite(matrix):
    """By Gauss' elimination with pivots that are balls: true only where proven."""
    return first_pivot(matrix) is None


def is_indefinite(matrix):
    """Whether some x'Ax is negative: true only where proven."""
    pivot = first_pivot(matrix)
    return pivot is not None and pivot < 0


def first_pivot(matrix):
    """The first pivot of the elimination that is not proven positive; None if all are."""
    rows, m = matrix.table(), matrix.nrows()
    for j in range(m):
        pivot = rows[j][j]
        if not pivot > 0:
            return pivot
        for i in range(j + 1, m):
            share = rows[i][j] / pivot
            for k in range(i, m):
                rows[i][k] -= share * rows[k][j]
                rows[k][i] = rows[i][k]
    return None


def cholesky(matrix):
    """F with FF' near a matrix, in extended precision; None where it is not positive definite."""
    A = np.array(matrix, dtype=EXTENDED)
    F = np.zeros_like(A)
    for j in range(len(A)):
        pivot = A[j, j] - F[j, :j] @ F[j, :j]
        if not pivot > 0:
            return None
        F[j, j] = np.sqrt(pivot)
        F[j + 1 :, j] = (A[j + 1 :, j] - F[j + 1 :, :j] @ F[j, :j]) / F[j, j]
    return F


def root_of(matrix):
    """K with K'K near the absolute value of a symmetric matrix, scaled to a unit diagonal first."""
    wide = np.array(matrix, dtype=EXTENDED)
    lengths = np.sqrt(np.abs(np.diag(wide)))
    largest = np.sqrt(np.max(np.abs(wide), initial=0))
    unit = np.where(lengths > 0, lengths, largest if largest > 0 else 1)
    scaled = (wide / unit[:, None] / unit).astype(np.float64)
    if not np.all(np.isfinite(scaled)):
        return np.zeros((0, len(wide)), dtype=EXTENDED)
    sizes, vectors = np.linalg.eigh(scaled)
    return (vectors * np.sqrt(np.abs(sizes))).T.astype(EXTENDED) * unit
