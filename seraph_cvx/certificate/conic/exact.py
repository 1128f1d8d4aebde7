"""Rational arithmetic for small programs: exact dependences, exact solutions, exact membership.

What floating point suggests (a rank, a support, a set of rows that are tight) is only where to
look; every relation is verified in fractions, for the doubles as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy

from ...numerics.checks import FloatArray, IntArray
from .arithmetic import Pair
from .cones import ConeProduct, Semidefinite

# Equations, at most, that are solved in fractions.
MOST_EQUATIONS = 80

# Columns, at most, among which dependences are looked for.
MOST_COLUMNS = 800

MOST_ENTRIES = 20_000
"""Entries, at most, of a matrix that is multiplied in fractions."""

DEPENDENT = 1e-9

SNAPS = (6, 20, 40)
"""Bits after the point to which free entries of a solution are rounded, one try each."""


def is_small(A: Any, P: Any) -> bool:
    """Whether products with these matrices are quick in fractions."""
    return A.shape[1] <= MOST_COLUMNS and A.nnz + (0 if P is None else P.nnz) <= MOST_ENTRIES


def solve_integers(M: list[list[int]], rhs: list[int]) -> list[Fraction] | None:
    """Solve a square system of integers by Bareiss's elimination; None where it is singular."""
    n = len(M)
    rows = [[*row, value] for row, value in zip(M, rhs, strict=True)]
    last = 1
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        top, head = rows[k], rows[k][k]
        for i in range(k + 1, n):
            row, factor = rows[i], rows[i][k]
            if factor:
                rows[i] = [0] * (k + 1) + [
                    (head * row[j] - factor * top[j]) // last for j in range(k + 1, n + 1)
                ]
            elif head != last:
                rows[i] = [0] * (k + 1) + [head * row[j] // last for j in range(k + 1, n + 1)]
        last = head
    solution = [Fraction(0)] * n
    for k in range(n - 1, -1, -1):
        known = sum((rows[k][j] * solution[j] for j in range(k + 1, n) if rows[k][j]), Fraction(0))
        solution[k] = (rows[k][n] - known) / rows[k][k]
    return solution


def solve_fractions(M: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction] | None:
    """Solve a square system of fractions exactly."""
    integers, values = [], []
    for row, value in zip(M, rhs, strict=True):
        scale = math.lcm(*(x.denominator for x in row), value.denominator)
        integers.append([int(x * scale) for x in row])
        values.append(int(value * scale))
    return solve_integers(integers, values)


def times(matrix: Any, x: Sequence[Fraction]) -> list[Fraction]:
    """The product of a sparse matrix of doubles and a vector of fractions."""
    rows = matrix.tocsr()
    total = [Fraction(0)] * rows.shape[0]
    data, columns = [Fraction(v) for v in rows.data.tolist()], rows.indices.tolist()
    for i, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        total[i] = sum((data[k] * x[columns[k]] for k in range(start, stop)), Fraction(0))
    return total


def product(values: FloatArray, x: Sequence[Fraction]) -> Fraction:
    """The inner product of doubles and fractions."""
    terms = zip(values.tolist(), x, strict=True)
    return sum((Fraction(v) * f for v, f in terms if v and f), Fraction(0))


class Dependences(NamedTuple):
    """Columns that imply the others exactly, and a line that no other column sees, if any.

    The line z has Ez = 0 and c'z != 0.
    """

    kept: IntArray
    line: list[Fraction] | None


def dependent_columns(E: Any, c: FloatArray) -> Dependences | None:
    """Find columns of a sparse matrix that are exact combinations of others, c_j included.

    None where nothing was found: the columns may be independent, or nearly dependent.
    """
    n = E.shape[1]
    if not n or n > MOST_COLUMNS or E.shape[0] * n > 4e6:
        return None
    D = E.toarray()
    lengths = np.sqrt(np.square(D).sum(axis=0))
    if not np.isfinite(lengths).all():
        return None
    scaled = D / np.where(lengths > 0.0, lengths, 1.0)
    R, order = scipy.linalg.qr(scaled, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R[: min(R.shape)]))
    rank = int((sizes > DEPENDENT * max(1.0, sizes[0] if sizes.size else 0.0)).sum())
    if rank == n:
        return None
    basis, others = order[:rank], order[rank:]
    weights = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
    dropped = []
    for j, weight in zip(others.tolist(), weights.T, strict=True):
        support = basis[np.abs(weight) > DEPENDENT]
        relation = _relation(D, j, support)
        if relation is None:
            continue
        gap = Fraction(c[j]) - product(c[support], relation)
        if gap:
            line = [Fraction(0)] * n
            line[j] = Fraction(1)
            for i, k in zip(support.tolist(), relation, strict=True):
                line[i] = -k
            return Dependences(basis, line)
        dropped.append(j)
    return Dependences(np.setdiff1d(np.arange(n), dropped), None) if dropped else None


def _relation(D: FloatArray, j: int, support: IntArray) -> list[Fraction] | None:
    """Exact k with D[:, j] = D[:, support] k, or None."""
    touched = np.flatnonzero((D[:, support] != 0.0).any(axis=1) | (D[:, j] != 0.0))
    part = D[np.ix_(touched, support)]
    if len(support) > min(MOST_EQUATIONS, len(touched)):
        return None
    rows = touched[_independent_rows(part)]
    M = [[Fraction(v) for v in D[i, support].tolist()] for i in rows]
    k = solve_fractions(M, [Fraction(D[i, j]) for i in rows])
    if k is None:
        return None
    for i in touched:
        if product(D[i, support], k) != Fraction(D[i, j]):
            return None
    return k


def _independent_rows(M: FloatArray) -> IntArray:
    """As many rows of a matrix as it has columns, far from dependent."""
    if not M.shape[1]:
        return np.zeros(0, dtype=np.int64)
    lengths = np.abs(M).max(axis=1, keepdims=True)
    M = M / np.where(lengths > 0.0, lengths, 1.0)
    return np.asarray(scipy.linalg.qr(M.T, mode="r", pivoting=True)[1][: M.shape[1]])


def nearby_solution(
    E: Any, f: Sequence[Fraction], near: FloatArray, weights: FloatArray, bits: int
) -> list[Fraction] | None:
    """An exact solution of Ez = f close to a given vector, or None.

    Entries with larger weights are rather solved for; the others are rounded to `bits` bits after
    the point, and stay.
    """
    D = E.toarray()
    m, n = D.shape
    if not m:
        return snapped(near, bits)
    if m * n > 4e5:
        return None
    row_sizes = np.abs(D).max(axis=1, initial=0.0)
    used = np.flatnonzero(row_sizes > 0.0)
    if any(f[i] for i in np.flatnonzero(row_sizes == 0.0)):
        return None
    if not used.size:
        return snapped(near, bits)
    scaled = D[used] / row_sizes[used, None] * weights
    R, order = scipy.linalg.qr(scaled, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R[: min(R.shape)]))
    rank = int((sizes > DEPENDENT * sizes[0]).sum()) if sizes.size else 0
    if rank > MOST_EQUATIONS:
        return None
    basis = order[:rank]
    rows = used[_independent_rows(D[np.ix_(used, basis)])]
    z = snapped(near, bits)
    for j in basis:
        z[j] = Fraction(0)
    known = [f[i] - product(D[i], z) for i in rows]
    M = [[Fraction(v) for v in D[i, basis].tolist()] for i in rows]
    solved = solve_fractions(M, known)
    if solved is None:
        return None
    for j, value in zip(basis.tolist(), solved, strict=True):
        z[j] = value
    return z if times(E, z) == list(f) else None


def snapped(values: FloatArray, bits: int) -> list[Fraction]:
    """The nearest multiples of 2^-bits."""
    scale = 2**bits
    return [Fraction(round(Fraction(v) * scale), scale) for v in values.tolist()]


def pair_of(z: Sequence[Fraction]) -> Pair:
    """The nearest pair of doubles."""
    high = np.array([float(x) for x in z])
    low = np.array([float(x - Fraction(h)) for x, h in zip(z, high.tolist(), strict=True)])
    return Pair(high, low)


def outside(cones: ConeProduct, z: Sequence[Fraction], dual: bool) -> list[str]:
    """The blocks in which a vector of fractions is not proven to be inside K or K*."""
    missing = []
    if not dual and any(z[i] for i in cones.zero):
        missing.append("zero cone")
    for group in cones.groups:
        for k, rows in enumerate(group.rows):
            block = [z[i] for i in rows]
            if not _is_inside(group, k, block, dual):
                missing.append(f"{group.kind} block at row {rows[0]}")
    return missing


def _is_inside(group: Any, k: int, block: list[Fraction], dual: bool) -> bool:
    if not any(block):
        return True
    if group.kind == "nonnegative":
        return block[0] >= 0
    if group.kind == "second_order":
        return block[0] >= 0 and block[0] ** 2 >= sum(x * x for x in block[1:])
    if isinstance(group, Semidefinite):
        matrix = [[Fraction(0)] * group.side for _ in range(group.side)]
        for i, j, x in zip(group.i.tolist(), group.j.tolist(), block, strict=True):
            matrix[i][j] = matrix[j][i] = x / 2 if dual and i != j else x
        return is_psd(matrix)
    # Exponential and power cones in intervals, except where the block is exactly a double.
    center = np.array([[float(x) for x in block]])
    width = np.array([[abs(float(x - Fraction(float(x)))) for x in block]])
    width = np.where(width > 0.0, np.nextafter(width, np.inf), 0.0)
    return bool(group.at(k).contains(center, width, dual)[0])


def is_psd(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix of fractions is PSD, singular or not, by elimination."""
    rows = [row[:] for row in matrix]
    while rows:
        k = max(range(len(rows)), key=lambda i: rows[i][i])
        pivot = rows[k][k]
        if pivot <= 0:
            return pivot == 0 and not any(any(row) for row in rows)
        top = rows.pop(k)
        factors = [row.pop(k) / pivot for row in rows]
        del top[k]
        rows = [
            [x - factor * t for x, t in zip(row, top, strict=True)] if factor else row
            for row, factor in zip(rows, factors, strict=True)
        ]
    return True


def is_proven_psd(P: Any) -> bool:
    """Whether a sparse symmetric matrix of doubles is proven PSD, component by component."""
    from ...numerics.verified_psd import is_proven_positive_definite

    diagonal = P.diagonal()
    if not (diagonal >= 0.0).all():
        return False
    count, label = scipy.sparse.csgraph.connected_components(P, directed=False)
    sizes = np.bincount(label, minlength=count)
    blocks = P.tocsr()
    for k in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(label == k)
        block = blocks[members][:, members].toarray()
        if is_proven_positive_definite(block, np.zeros(len(block))):
            continue
        if len(block) > MOST_EQUATIONS // 2:
            return False
        if not is_psd([[Fraction(v) for v in row] for row in block.tolist()]):
            return False
    return True
