"""Sums over pairs of points with 800 bits: what a claim about the exact doubles is held against."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat

BITS = 800


def exact(values):
    """These doubles, without rounding."""
    return arb_mat(np.atleast_2d(np.asarray(values, dtype=float)).tolist())


def rounded(matrix):
    rows, columns = range(matrix.nrows()), range(matrix.ncols())
    return np.array([[float(matrix[i, j]) for j in columns] for i in rows])


def total(terms):
    return sum(terms, arb(0))


def identity(m, entry=1.0):
    return exact(entry * np.eye(m))


def differences(points, rows):
    """x_i - x_j for each row (i, j), exactly."""
    X, m = exact(points), np.shape(points)[1]
    return arb_mat([[X[i, a] - X[j, a] for a in range(m)] for i, j in np.asarray(rows).tolist()])


def squares(V, L):
    """v'LL'v for each row v."""
    Y = V * L
    return [total(Y[k, a] ** 2 for a in range(Y.ncols())) for k in range(Y.nrows())]


def moment(V, weights):
    """sum_k w_k v_k v_k'."""
    m = range(V.ncols())
    weighted = arb_mat([[arb(w) * V[k, a] for a in m] for k, w in enumerate(np.ravel(weights))])
    return weighted.transpose() * V


def cholesky(C):
    """The factor of a matrix that is proven positive definite, or None."""
    m = C.nrows()
    F = [[arb(0)] * m for _ in range(m)]
    for j in range(m):
        pivot = C[j, j] - total(F[j][k] ** 2 for k in range(j))
        if not pivot > 0:
            return None
        F[j][j] = pivot.sqrt()
        for i in range(j + 1, m):
            F[i][j] = (C[i, j] - total(F[i][k] * F[j][k] for k in range(j))) / F[j][j]
    return arb_mat(F)


def log_det(C):
    """log det C, or None where C is not proven positive definite."""
    F = cholesky(C)
    return None if F is None else 2 * total(F[i, i].log() for i in range(C.nrows()))


def unit_basis(C):
    """T, some exact numbers, with T'CT = I, nearly; directions of no extent are stretched far."""
    m = C.nrows()
    lifted = C + identity(m) * (C.trace().mid() * arb(2) ** -300)
    T = cholesky(lifted).inv().transpose()
    return arb_mat([[T[i, j].mid() for j in range(m)] for i in range(m)])
