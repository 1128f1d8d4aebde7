"""Matrices of balls, sums over pairs in them, and what is proven of either."""

from __future__ import annotations

import warnings

import numpy as np
from flint import arb, arb_mat

from seraph_cvx import NotCertified, solve_m_step

BITS = 800
"""More than 240 digits."""

EXTENDED = np.longdouble


def total(terms):
    return sum(terms, arb(0))


def exact(values):
    """The very numbers of a matrix, of doubles or in extended precision."""
    values = np.atleast_2d(np.asarray(values, dtype=EXTENDED))
    with np.errstate(over="ignore"):
        high = values.astype(np.float64)
    if not np.all(np.isfinite(high) & ((np.abs(high) > 1e-280) | (values == high))):
        return arb_mat(*values.shape, [_wide(x) for x in values.ravel()])
    matrix = arb_mat(*high.shape, high.ravel().tolist())
    low = (values - high).astype(np.float64)
    return matrix + arb_mat(*low.shape, low.ravel().tolist()) if np.any(low) else matrix


def _wide(x):
    """A number in extended precision beyond the range of doubles."""
    mantissa, exponent = np.frexp(x)
    high = float(mantissa)
    return (arb(high) + arb(float(mantissa - high))) * arb(2) ** int(exponent)


def rounded(matrix):
    return np.array([[float(x) for x in row] for row in matrix.tolist()])


def differences(points, rows):
    """x_i - x_j for each row (i, j), exactly."""
    X, m = exact(points), np.shape(points)[1]
    return arb_mat([[X[i, a] - X[j, a] for a in range(m)] for i, j in np.asarray(rows).tolist()])


def forms(V, P):
    """v'Pv for each row v."""
    image = V * P
    return [total(image[k, a] * V[k, a] for a in range(V.ncols())) for k in range(V.nrows())]


def squares(V, L):
    """v'LL'v for each row v."""
    return [total(x * x for x in row) for row in (V * L).tolist()]


def is_within(errors, limits):
    """Whether no entry of one matrix is larger than that of the other."""
    return all(abs(x) <= y for x, y in zip(errors.entries(), limits.entries(), strict=True))


def moment(V, weights):
    """sum_k w_k v_k v_k'."""
    rows = zip(np.ravel(weights), V.tolist(), strict=True)
    return arb_mat([[arb(w) * x for x in row] for w, row in rows]).transpose() * V


def is_positive_definite(C):
    """True only where proven."""
    return log_det(C) is not None


def log_det(C):
    """log det C by its Cholesky factor, or None where C is not proven positive definite."""
    rows = C.tolist()
    for j, row in enumerate(rows):
        pivot = row[j] = row[j] - total(x * x for x in row[:j])
        if not pivot > 0:
            return None
        for other in rows[j + 1 :]:
            off = other[j] - total(x * y for x, y in zip(other[:j], row[:j], strict=True))
            other[j] = off / pivot.sqrt()
    return total(row[j].log() for j, row in enumerate(rows))


def solve_quietly(objective, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        return solve_m_step(objective, allow_unattained=True, **settings)


def random_factors(rng, m, scale=1.0, how_many=5):
    for _ in range(how_many):
        rank = int(rng.integers(1, m + 1))
        yield rng.normal(size=(m, rank)) * 10.0 ** rng.uniform(-2, 2) / scale
