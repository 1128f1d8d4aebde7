"""The span of the differences of points, computed exactly, in rational numbers.

Where R = 0, the matrix of a dual point is singular along every direction that no pair has, and no
rounded arithmetic proves a singular matrix PSD. In coordinates of what the pairs span it is not.
"""

from __future__ import annotations

import numpy as np

from .ball_arithmetic import fmpq, fmpq_mat
from .checks import FloatArray, IntArray
from .exact_rank import component_roots


def exact_coordinates(points: FloatArray, pairs: IntArray) -> tuple[FloatArray, IntArray]:
    """Find exact coordinates Z of the span of the pairs' differences, and groups g of points.

    For points of one group, g_i = g_j, x_i - x_j = (z_i - z_j) E with E a basis of the span. A
    matrix sum_k w_k v_k v_k' over such pairs is therefore E' (sum_k w_k u_k u_k') E with
    u_k = z_i - z_j, and PSD if and only if the inner matrix is.

    Parameters
    ----------
    points : (n, m) array
        Taken as the doubles they are.
    pairs : (k, 2) integer array
        The pairs whose differences are to be spanned.

    Returns
    -------
    coordinates : (n, rank) array
        Z: some of the features, or unit vectors where no point is in the span of the others.
    group : (n,) integer array
        g: two points are in one group if and only if their difference is in the span.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [0.1, 0.3], [0.2, 0.6], [0.3, 0.9]])
    >>> exact_coordinates(points, np.array([[0, 1]]))[1]  # as doubles, 0.3 is not 3 * 0.1
    array([0, 0, 0, 1])
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
