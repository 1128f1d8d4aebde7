"""Real numbers as balls: a midpoint and a radius that holds every rounding error (Arb, in FLINT).

An operation on balls returns a ball with all results of the operation on their members, and a
comparison of balls is true only where it is true of all members. So a positive pivot is proven to
be positive, whatever was rounded on the way to it; and what cannot be proven is false, not wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .checks import FloatArray, IntArray, MissingExtra
from .exact_rank import component_roots

try:
    from flint import arb as arb
    from flint import arb_mat as arb_mat
    from flint import ctx as ctx
    from flint import fmpq as fmpq
    from flint import fmpq_mat as fmpq_mat
except ImportError:
    raise MissingExtra(
        'A rigorous proof needs python-flint: pip install "seraph-cvx[rigorous]".'
    ) from None

ZERO, ONE = arb(0), arb(1)


def ball_matrix(values: FloatArray) -> arb_mat:
    """Convert a matrix of doubles to balls, exactly."""
    rows, columns = values.shape
    return arb_mat(rows, columns, values.ravel().tolist())


def surprise(s: arb, similar: arb, dissimilar: arb) -> arb:
    """Enclose the loss of pairs with soft labels.

    -q ln sigma(-s) - (1 - q) ln sigma(s), from eq. (8); q = `similar`, 1 - q = `dissimilar`.

    It is log(1 + e^{-s}) + q*s = log(1 + e^s) - (1 - q)*s: whichever does not cancel, both true.
    """
    if s.mid() >= 0:
        return (-s).exp().log1p() + similar * s
    return s.exp().log1p() - dissimilar * s


def posterior(s: arb) -> tuple[arb, arb]:
    """Enclose both probabilities of a pair.

    (sigma(-s), sigma(s)), eq. (8): neither as 1 minus the other, so that both are sharp.
    """
    odds = (-s if s.mid() >= 0 else s).exp()
    rare, frequent = odds / (1 + odds), 1 / (1 + odds)
    return (rare, frequent) if s.mid() >= 0 else (frequent, rare)


def entropy_from_below(p: arb, complement: arb) -> arb:
    """Bound the entropy of pairs from below.

    -p ln p - (1 - p) ln(1 - p) in nats; a term whose ball reaches 0 counts as 0, its least.
    """
    return sum((-x * x.log() for x in (p, complement) if x > 0), ZERO)


def pair_matrix(X: arb_mat, pairs: IntArray, weights: Sequence[arb]) -> arb_mat:
    """Enclose the weighted sum over pairs of vv'.

    sum_k w_k v_k v_k' = X' (Diag(W 1) - W) X, v_k = x_i - x_j, by two matrix products.
    """
    n = X.nrows()
    laplacian = [[ZERO] * n for _ in range(n)]
    for (i, j), w in zip(pairs.tolist(), weights, strict=True):
        laplacian[i][i] += w
        laplacian[j][j] += w
        laplacian[i][j] -= w
        laplacian[j][i] -= w
    flat = (entry for row in laplacian for entry in row)
    return X.transpose() * (arb_mat(n, n, flat) * X)


def is_proven_psd(S: arb_mat) -> bool:
    """Whether every symmetric matrix in the ball S is PSD, by a block Cholesky factorization.

    S is PSD if its rows that are exactly zero are left out and the rest is positive definite; that
    rest is scaled to a diagonal near 1 first. False is no verdict: S may be singular, or the balls
    too wide.
    """
    rows = S.table()
    kept = [j for j, row in enumerate(rows) if not all(entry.is_zero() for entry in row)]
    if not all(certainly_positive(rows[j][j]) for j in kept):
        return False
    scale = {j: rows[j][j].mid().rsqrt() for j in kept}
    scaled = (scale[i] * rows[i][j] * scale[j] for i in kept for j in kept)
    return _is_positive_definite(arb_mat(len(kept), len(kept), scaled))


def certainly_positive(pivot: arb) -> bool:
    """Whether the whole ball is above zero."""
    return bool(pivot > 0)


def _is_positive_definite(S: arb_mat) -> bool:
    """Whether [[P, Q'], [Q, T]] is positive definite: whether P and T - Q P^{-1} Q' are."""
    m = S.nrows()
    if m <= 1:
        return m == 0 or certainly_positive(S[0, 0])
    first, second = range(m // 2), range(m // 2, m)
    rows = S.table()
    P = _block(rows, first, first)
    if not _is_positive_definite(P):
        return False
    Q, T = _block(rows, second, first), _block(rows, second, second)
    try:
        return _is_positive_definite(T - Q * P.solve(_block(rows, first, second)))
    except ZeroDivisionError:  # P cannot be told from a singular matrix at this precision
        return False


def _block(entries: list[list[arb]], rows: range, columns: range) -> arb_mat:
    return arb_mat(len(rows), len(columns), [entries[i][j] for i in rows for j in columns])


def rounded_up(x: arb) -> float:
    """The smallest double, or the next, above the whole ball; infinity if there is none."""
    if not x.is_finite():
        return math.inf
    value = float(x.upper())
    while not arb(value) >= x:
        value = math.nextafter(value, math.inf)
    return value


def rounded_down(x: arb) -> float:
    """The largest double, or the next, below the whole ball; minus infinity if there is none."""
    return 0.0 - rounded_up(-x)


def exact_coordinates(points: FloatArray, pairs: IntArray) -> tuple[FloatArray, IntArray]:
    """Find exact coordinates Z of the span of the pairs' differences, and groups g of points.

    For points of one group, g_i = g_j, x_i - x_j = (z_i - z_j) E with E a basis of the span. A
    matrix sum_k w_k v_k v_k' over such pairs is therefore E' (sum_k w_k u_k u_k') E with
    u_k = z_i - z_j, and PSD if and only if the inner matrix is.
    """
    n, m = points.shape
    representative = component_roots(n, pairs)
    joined = np.flatnonzero(representative != np.arange(n))
    if n - 1 <= m and _differences(points, np.arange(1, n), np.zeros(n, int)).rank() == n - 1:
        return np.eye(n)[:, joined], representative
    reduced, rank = _differences(points, joined, representative[joined]).rref()
    pivots = _pivots(reduced, rank)
    if rank == m:
        return points, np.zeros(n, dtype=np.int64)
    return points[:, pivots], _groups(points, reduced, pivots)


def _exact(values: FloatArray) -> fmpq_mat:
    rows, columns = values.shape
    return fmpq_mat(rows, columns, [fmpq(*x.as_integer_ratio()) for x in values.ravel().tolist()])


def _differences(points: FloatArray, minuend: IntArray, subtrahend: IntArray) -> fmpq_mat:
    return _exact(points[minuend]) - _exact(points[subtrahend[: len(minuend)]])


def _pivots(reduced: fmpq_mat, rank: int) -> list[int]:
    rows = reduced.table()[:rank]
    return [next(j for j, entry in enumerate(row) if entry != 0) for row in rows]


def _groups(points: FloatArray, reduced: fmpq_mat, pivots: list[int]) -> IntArray:
    """Number the distinct remainders x - (x on the pivots) * reduced: x modulo the span."""
    rest = [j for j in range(points.shape[1]) if j not in pivots]
    rows = reduced.table()
    dependence = fmpq_mat(
        len(pivots), len(rest), [rows[a][b] for a in range(len(pivots)) for b in rest]
    )
    remainder = _exact(points[:, rest]) - _exact(points[:, pivots]) * dependence
    numbers: dict[tuple[fmpq, ...], int] = {}
    return np.array([numbers.setdefault(tuple(row), len(numbers)) for row in remainder.table()])
