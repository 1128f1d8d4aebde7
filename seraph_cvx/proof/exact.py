"""Rational arithmetic for small programs: exact dependences, exact solutions, exact membership.

What floating point suggests (a rank, a support, a set of rows that are tight) is only where to
look; every relation is verified in fractions, for the doubles as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy

from .arithmetic import Array
from .cones import Blocks, ConeProduct, Semidefinite
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


def solve_fractions(M: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction] | None:
    """Solve a square system exactly, by Bareiss's elimination in integers; None if singular."""
    n, rows, last = len(M), [], 1
    for equation in ([*row, value] for row, value in zip(M, rhs, strict=True)):
        scale = math.lcm(*(x.denominator for x in equation))
        rows.append([int(x * scale) for x in equation])
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        top, head = rows[k], rows[k][k]
        for i in range(k + 1, n):
            row, factor = rows[i], rows[i][k]
            rows[i] = [0] * (k + 1) + [
                (head * row[j] - factor * top[j]) // last for j in range(k + 1, n + 1)
            ]
        last = head
    solution = [Fraction(0)] * n
    for k in range(n - 1, -1, -1):
        solution[k] = (rows[k][n] - inner_product(rows[k][k + 1 : n], solution[k + 1 :])) / rows[k][
            k
        ]
    return solution


class Dependences(NamedTuple):
    """Columns that imply the others exactly; or a line z with Ez = 0 and c'z != 0."""

    kept: Array
    line: list[Fraction] | None


def _ranked(M: Array) -> tuple[int, Array, Array]:
    """The rank of a matrix, nearly, an order of its columns, and R of its QR factorization."""
    R, order = scipy.linalg.qr(M, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R[: min(R.shape)]))
    return int((sizes > DEPENDENT * max(sizes, default=0.0)).sum()), order, R


def dependent_columns(E: Any, c: Array) -> Dependences | None:
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
    rank, order, R = _ranked(D / np.where(lengths > 0.0, lengths, 1.0))
    basis, dropped = order[:rank], []
    weights = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
    for j, weight in zip(order[rank:].tolist(), weights.T, strict=True):
        support = basis[np.abs(weight) > DEPENDENT]
        relation = _relation(D, j, support)
        if relation is None:
            continue
        if Fraction(c[j]) != inner_product(c[support].tolist(), relation):
            line = [Fraction(0)] * n
            line[j] = Fraction(1)
            for i, k in zip(support.tolist(), relation, strict=True):
                line[i] = -k
            return Dependences(basis, line)
        dropped.append(j)
    return Dependences(np.setdiff1d(np.arange(n), dropped), None) if dropped else None


def _relation(D: Array, j: int, support: Array) -> list[Fraction] | None:
    """Exact k with D[:, j] = D[:, support] k, or None."""
    touched = np.flatnonzero((D[:, support] != 0.0).any(axis=1) | (D[:, j] != 0.0))
    if len(support) > min(MOST_EQUATIONS, len(touched)):
        return None
    k = _solve_on(D, touched, support, [Fraction(v) for v in D[:, j].tolist()])
    exact = (
        k is not None
        and _fits(k)
        and all(inner_product(D[i, support].tolist(), k) == Fraction(D[i, j]) for i in touched)
    )
    return k if exact else None


def _solve_on(D: Array, rows: Array, columns: Array, f: Sequence[Fraction]) -> Any:
    """Solve as many of the equations Dz = f as there are columns, chosen far from dependent."""
    part = D[np.ix_(rows, columns)]
    sizes = np.abs(part).max(axis=1, initial=0.0, keepdims=True)
    order = _ranked((part / np.where(sizes > 0.0, sizes, 1.0)).T)[1] if len(columns) else rows[:0]
    chosen = rows[order[: len(columns)]].tolist()
    M = [[Fraction(v) for v in D[i, columns].tolist()] for i in chosen]
    return solve_fractions(M, [f[i] for i in chosen])


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
        rank, order, _ = _ranked(D[used] / sizes[used, None] * weights)
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


def is_psd(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix of fractions is PSD, singular or not, by elimination."""
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
