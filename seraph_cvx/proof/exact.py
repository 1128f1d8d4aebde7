"""Rational arithmetic for small programs: exact solutions near a point, exact membership.

What floating point suggests (a rank, a support, a set of rows that are tight) is only where to
look; every relation is verified in fractions, for the doubles as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy

from .arithmetic import Array
from .cones import Blocks, ConeProduct, Semidefinite
from .rational import solve
from .rounding import up

# Equations that are solved, rows or columns among which dependences are looked for, and entries of
# a matrix that is multiplied, at most, in fractions.
MOST_EQUATIONS, MOST_COLUMNS, MOST_ENTRIES = 80, 800, 20_000

DEPENDENT = 1e-9

MOST_INTEGER = 2**106
"""Pairs of doubles hold all integers below."""

LARGEST = Fraction(2) ** 1000
"""Entries beyond this are not converted to doubles, whose largest is 2^1024."""

SNAPS = (6, 20, 40)
"""Bits after the point to which free entries of a solution are rounded, one try each."""


def is_small(A: Any, P: Any) -> bool:
    """Whether products with these matrices are quick in fractions."""
    return (
        bool(max(A.shape) <= MOST_COLUMNS) and A.nnz + (0 if P is None else P.nnz) <= MOST_ENTRIES
    )


def inner_product(a: Iterable[float | Fraction], b: Iterable[Fraction]) -> Fraction:
    """The inner product of doubles or fractions and fractions."""
    pairs = zip(a, b, strict=True)
    return sum((Fraction(u) * v for u, v in pairs if u and v), Fraction(0))


def matrix_product(matrix: Any, x: Sequence[Fraction]) -> list[Fraction]:
    """The product of a sparse matrix of doubles and a vector of fractions."""
    rows = matrix.tocsr()
    ends = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    data, columns = rows.data.tolist(), rows.indices.tolist()
    return [inner_product(data[a:b], [x[j] for j in columns[a:b]]) for a, b in ends]


def _ranked(M: Array) -> tuple[int, Array]:
    """The rank of a matrix, nearly, and an order of its columns."""
    R, order = scipy.linalg.qr(M, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R[: min(R.shape)]))
    return int((sizes > DEPENDENT * max(sizes, default=0.0)).sum()), order


def _solve_on(D: Array, rows: Array, columns: Array, f: Sequence[Fraction]) -> Any:
    """Solve as many of the equations Dz = f as there are columns, chosen far from dependent."""
    part = D[np.ix_(rows, columns)]
    sizes = np.abs(part).max(axis=1, initial=0.0, keepdims=True)
    order = _ranked((part / np.where(sizes > 0.0, sizes, 1.0)).T)[1] if len(columns) else rows[:0]
    chosen = rows[order[: len(columns)]]
    return solve(scipy.sparse.csr_array(D[np.ix_(chosen, columns)]), [f[i] for i in chosen])


def nearby_solution(
    E: Any, f: Sequence[Fraction], near: Array, weights: Array, bits: int
) -> list[Fraction] | None:
    """An exact solution of Ez = f close to a given vector, or None.

    Entries with larger weights are rather solved for; the others are rounded to `bits` bits after
    the point, and stay.
    """
    z = snapped(near, bits)
    if E.shape[0] * E.shape[1] > 4e5:
        return None
    D = E.toarray()
    sizes = np.abs(D).max(axis=1, initial=0.0)
    used = np.flatnonzero(sizes > 0.0)
    if used.size:
        rank, order = _ranked(D[used] / sizes[used, None] * weights)
        if rank > MOST_EQUATIONS:
            return None
        basis = order[:rank]
        for j in basis:
            z[j] = Fraction(0)
        rest = [value - known for value, known in zip(f, matrix_product(E, z), strict=True)]
        solved = _solve_on(D, used, basis, rest)
        if solved is None:
            return None
        for j, value in zip(basis.tolist(), solved, strict=True):
            z[j] = value
    return z if _fits(z) and matrix_product(E, z) == list(f) else None


def snapped(values: Array, bits: int) -> list[Fraction]:
    """The nearest multiples of 2^-bits."""
    scale = 2**bits
    return [Fraction(round(Fraction(v) * scale), scale) for v in values.tolist()]


def scaled_to_integers(z: list[Fraction]) -> list[Fraction]:
    """The multiple of a ray whose entries are integers, where pairs of doubles hold these."""
    scale = math.lcm(*(x.denominator for x in z))
    integers = [x * scale for x in z]
    return integers if max(map(abs, integers), default=0) < MOST_INTEGER else z


def _fits(z: Iterable[Fraction]) -> bool:
    """Whether no entry is so large that doubles may not hold it."""
    return all(abs(x) <= LARGEST for x in z)


def is_outside(cones: ConeProduct, z: Sequence[Fraction], dual: bool) -> bool:
    """Whether a vector of fractions is not proven to be inside K or K*."""
    return (not dual and any(z[i] for i in cones.zero.tolist())) or not all(
        _is_inside(group, k, [z[i] for i in rows.tolist()], dual)
        for group in cones.groups
        for k, rows in enumerate(group.rows)
    )


def _is_inside(group: Blocks, k: int, block: list[Fraction], dual: bool) -> bool:
    if not any(block):
        return True
    if group.kind == "nonnegative":
        return block[0] >= 0
    if group.kind == "second_order":
        return block[0] >= 0 and block[0] ** 2 >= inner_product(block[1:], block[1:])
    if isinstance(group, Semidefinite):
        matrix = [[Fraction(0)] * group.side for _ in range(group.side)]
        for i, j, x in zip(group.i.tolist(), group.j.tolist(), block, strict=True):
            matrix[i][j] = matrix[j][i] = x / 2 if dual and i != j else x
        return is_psd(matrix)
    # Exponential and power cones in intervals, without width where the block is of doubles.
    if not _fits(block):
        return False
    center = np.array([[float(x) for x in block]])
    width = np.array([[up(abs(x - Fraction(float(x)))) for x in block]])
    with np.errstate(all="ignore"):
        return bool(group.at(k).contains(center, width, dual)[0])


def is_psd(matrix: list[list[Any]]) -> bool:
    """Whether a symmetric matrix of rationals is PSD, singular or not, by elimination."""
    rows = [row[:] for row in matrix]
    while rows:
        k = max(range(len(rows)), key=lambda i: rows[i][i])
        pivot = rows[k][k]
        if pivot <= 0:
            return not any(any(row) for row in rows)
        top = rows.pop(k)
        factors = [row.pop(k) / pivot for row in rows]
        del top[k]
        rows = [
            [x - factor * t for x, t in zip(row, top, strict=True)]
            for row, factor in zip(rows, factors, strict=True)
        ]
    return True
