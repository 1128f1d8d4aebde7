"""Exact linear algebra with sparse matrices of doubles: solutions, ranks, dependent rows.

A system is split into the blocks of its triangular form, which are mostly single equations; what
is left is lifted p-adically. Which rows depend on others is found by elimination modulo a prime: a
rank there is never above the true one, and every dependence is verified in rationals.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np
import scipy

from .arithmetic import Array

PRIME = 2**61 - 1
"""A Mersenne prime: powers of two are shifts modulo it, and flint's words hold it."""

LONG = 2_000
"""Bits of a block's common denominator that is better left out until the end: gcds cost more."""

FILLED = 8
"""A row of dictionaries takes about this many times the memory and time of one of words."""

Rational = Any
"""A number of flint's: an fmpq, or an fmpz."""


def rationals(values: Any) -> list[Rational]:
    """Doubles, integers or fractions as rationals of flint."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return [flint.fmpq(*value.as_integer_ratio()) for value in values]


def fractions(values: Sequence[Rational]) -> list[Fraction]:
    """Rationals of flint as fractions."""
    return [Fraction(int(value.p), int(value.q)) for value in values]


class IntegerRows(NamedTuple):
    """The rows of a sparse matrix of doubles, row i times 2^shift_i: integers."""

    columns: list[list[int]]
    entries: list[list[int]]
    shift: list[int]

    @classmethod
    def of(cls, M: Any) -> IntegerRows:
        """The rows of a sparse matrix, without its zeros."""
        rows = scipy.sparse.csr_array(M, copy=True)
        rows.eliminate_zeros()
        mantissas, powers = np.frexp(rows.data)
        whole = np.ldexp(mantissas, 53).astype(np.int64)
        spare = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # zeros at the end
        whole, powers = whole >> spare, powers - 53 + spare
        counts = np.diff(rows.indptr)
        lowest = np.zeros(len(counts), dtype=np.int64)
        lowest[counts > 0] = np.minimum.reduceat(powers, rows.indptr[:-1][counts > 0])
        moved = (powers - np.repeat(lowest, counts)).tolist()
        data = [v << k if k else v for v, k in zip(whole.tolist(), moved, strict=True)]
        columns, ends = rows.indices.tolist(), rows.indptr.tolist()
        parts = [slice(*ends[i : i + 2]) for i in range(len(counts))]
        return cls([columns[p] for p in parts], [data[p] for p in parts], (-lowest).tolist())

    def times(self, x: Sequence[Rational]) -> list[Rational]:
        """The exact product with a vector of rationals."""
        return [self.product(i, x) for i in range(len(self.shift))]

    def product(self, i: int, x: Sequence[Rational]) -> Rational:
        """The exact inner product of a row with a vector of rationals."""
        return shifted(_inner(self.columns[i], self.entries[i], x), -self.shift[i])


def _inner(columns: Sequence[int], entries: Sequence[int], x: Sequence[Rational]) -> Rational:
    """The inner product of a row with a vector; terms of one denominator are added as integers."""
    sums: dict[Rational, Rational] = {}
    for j, value in zip(columns, entries, strict=True):
        if x[j]:
            denominator = x[j].q
            sums[denominator] = sums.get(denominator, 0) + value * x[j].p
    return sum((flint.fmpq(total, q) for q, total in sums.items()), flint.fmpq(0))


def shifted(value: Rational, power: int) -> Rational:
    """The product with a power of two."""
    if not power or not value:
        return value
    return value * (1 << power) if power > 0 else value / (1 << -power)


def solve(M: Any, rhs: Sequence[Fraction]) -> list[Fraction] | None:
    """Solve a square sparse system of doubles exactly; None if it is singular."""
    found = solve_all(M, [rationals(rhs)])
    return None if found is None else fractions(found[0])


def solve_all(M: Any, sides: Sequence[Sequence[Rational]]) -> list[list[Rational]] | None:
    """Solve Mx = r exactly for some right sides r; None if M is singular."""
    M = scipy.sparse.csr_array(M, copy=True)
    M.eliminate_zeros()
    M.indices, M.indptr = M.indices.astype(np.int32), M.indptr.astype(np.int32)  # SciPy < 1.15
    n = M.shape[0]
    partner = scipy.sparse.csgraph.maximum_bipartite_matching(M, perm_type="column")
    if (partner < 0).any():
        return None
    place = np.empty(n, dtype=np.int32)  # the equation of each unknown
    place[partner] = np.arange(n)
    matched = scipy.sparse.csr_array((M.data, place[M.indices], M.indptr), shape=M.shape)
    count, label = scipy.sparse.csgraph.connected_components(matched, connection="strong")
    rows = IntegerRows.of(M)
    order = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    # Pearce's algorithm numbers a block after those whose unknowns it needs.
    solutions: list[list[Rational]] = [[flint.fmpq(0)] * n for _ in sides]
    given = [[k for k, value in enumerate(values) if value] for values in zip(*sides, strict=True)]
    scaled, scales = list(sides), [flint.fmpz(1)] * len(sides)  # by long common denominators
    nonzero: list[set[int]] = [set() for _ in range(n)]  # the sides whose solution has x_j
    for block in order if count else ():
        if len(block) == 1:
            i, j = int(block[0]), int(partner[block[0]])
            for k in set(given[i]).union(*(nonzero[t] for t in rows.columns[i])):
                if _solve_row(rows, i, j, scaled[k], solutions[k]):
                    nonzero[j].add(k)
            continue
        unknowns = partner[block].tolist()
        if not _solve_block(rows, block.tolist(), unknowns, scaled, solutions):
            return None
        for j in unknowns:
            nonzero[j] = {k for k, x in enumerate(solutions) if x[j]}
        for k, x in enumerate(solutions):
            common = math.lcm(*(int(x[j].q) for j in unknowns))
            if common.bit_length() > LONG:
                solutions[k], scaled[k] = (
                    [v * common for v in values] for values in (x, scaled[k])
                )
                scales[k] *= common
    return [
        x if scale == 1 else [v / scale if v else v for v in x]
        for x, scale in zip(solutions, scales, strict=True)
    ]


def _solve_row(rows: IntegerRows, i: int, j: int, side: Any, x: list[Rational]) -> bool:
    """Solve one equation for one unknown, the others known; say whether that is not zero."""
    pivot = rows.entries[i][rows.columns[i].index(j)]  # x[j] is zero until now
    total = shifted(side[i], rows.shift[i]) - _inner(rows.columns[i], rows.entries[i], x)
    x[j] = total / pivot
    return bool(total)


def _solve_block(
    rows: IntegerRows,
    block: list[int],
    unknowns: list[int],
    sides: Sequence[Any],
    solutions: list[list[Rational]],
) -> bool:
    """Solve some equations for as many unknowns, the others known, by p-adic lifting."""
    size, place = len(block), {j: k for k, j in enumerate(unknowns)}
    table, right = [0] * (size * size), []
    for k, i in enumerate(block):
        for j, value in zip(rows.columns[i], rows.entries[i], strict=True):
            if j in place:
                table[k * size + place[j]] = value
        right += [
            shifted(side[i], rows.shift[i]) - _inner(rows.columns[i], rows.entries[i], x)
            for side, x in zip(sides, solutions, strict=True)
        ]
    scale = math.lcm(*(int(value.q) for value in right))
    sides_matrix = flint.fmpz_mat(size, len(sides), [int((value * scale).p) for value in right])
    try:
        matrix: Any = flint.fmpq_mat(flint.fmpz_mat(size, size, table))
        found = matrix.solve(flint.fmpq_mat(sides_matrix), algorithm="dixon")
    except ZeroDivisionError:
        return False
    for column, x in enumerate(solutions):
        for k, j in enumerate(unknowns):
            x[j] = found[k, column] / scale
    return True


def rank_modulo_prime(M: Any) -> int:
    """The rank of a sparse matrix of doubles modulo a prime, which is at most its rank."""
    return len(_pivots(M)[0])


def _residues(M: Any) -> list[dict[int, int]]:
    """The rows of a sparse matrix of doubles modulo the prime, times powers of two."""
    rows = IntegerRows.of(M)
    return [
        {j: value % PRIME for j, value in zip(columns, entries, strict=True)}
        for columns, entries in zip(rows.columns, rows.entries, strict=True)
    ]


def _pivots(M: Any) -> tuple[Array, Array]:
    """Rows and columns of as large a submatrix as there is that is regular modulo the prime.

    Gauss's elimination: columns with one row, else in the shortest row that with the fewest rows;
    of a matrix that has filled up, by flint.
    """
    rows = _residues(M)
    column_rows: list[set[int]] = [set() for _ in range(M.shape[1])]
    for i, row in enumerate(rows):
        for j in row:
            column_rows[j].add(i)
    pivots: list[tuple[int, int]] = []
    alone = [j for j, members in enumerate(column_rows) if len(members) == 1]
    waiting = [(len(row), i) for i, row in enumerate(rows)]
    heapq.heapify(waiting)
    while alone or waiting:
        if alone:
            j = alone.pop()
            if len(column_rows[j]) != 1:
                continue
            (i,) = column_rows[j]
        else:
            size, i = heapq.heappop(waiting)
            if not rows[i] or size != len(rows[i]):
                continue
            if FILLED * size > len(column_rows) - len(pivots):
                pivots += _dense_pivots({t: row for t, row in enumerate(rows) if row})
                break
            j = min(rows[i], key=lambda k: len(column_rows[k]))
        pivots.append((i, j))
        row, rows[i] = rows[i], {}
        for k in row:
            column_rows[k].discard(i)
        inverse = pow(row.pop(j), -1, PRIME)
        for t in column_rows[j]:
            other = rows[t]
            factor = other.pop(j) * inverse % PRIME
            for k, value in row.items():
                changed = (other.get(k, 0) - factor * value) % PRIME
                if changed:
                    other[k] = changed
                    column_rows[k].add(t)
                elif k in other:
                    del other[k]
                    column_rows[k].discard(t)
            heapq.heappush(waiting, (len(other), t))
        column_rows[j] = set()
        alone += [k for k in row if len(column_rows[k]) == 1]
    found = np.array(sorted(pivots), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _dense_pivots(rows: dict[int, dict[int, int]]) -> list[tuple[int, int]]:
    """The same for rows modulo the prime that are nearly full."""
    columns = sorted(set().union(*rows.values()))
    table = [[row.get(j, 0) for j in columns] for row in rows.values()]
    chosen = _leading(flint.nmod_mat(table, PRIME).transpose())
    places = _leading(flint.nmod_mat([table[k] for k in chosen], PRIME))
    names = list(rows)
    return [(names[k], columns[j]) for k, j in zip(chosen, places, strict=True)]


def _leading(matrix: Any) -> list[int]:
    """The columns of a matrix that are no combinations of those before."""
    reduced, rank = matrix.rref()
    places: list[int] = []
    for i in range(rank):
        first = places[-1] + 1 if places else 0
        places.append(next(j for j in range(first, matrix.ncols()) if int(reduced[i, j])))
    return places


class Contradiction(NamedTuple):
    """Multipliers z of equations Ax = b with z'A = 0 and z'b = `size`, which is not zero."""

    multipliers: dict[int, Fraction]
    size: Fraction


class Dependence(NamedTuple):
    """Rows that imply all others exactly, but for the contradictions."""

    kept: Array
    contradictions: list[Contradiction]


def dependent_rows(A: Any, b: Sequence[Any] | Array) -> Dependence:
    """Find the rows of Ax = b that are exact combinations of the others, b left out."""
    A = scipy.sparse.csr_array(A)
    kept, columns = _pivots(A)
    rest = np.setdiff1d(np.arange(A.shape[0]), kept)
    if not rest.size:
        return Dependence(np.arange(A.shape[0]), [])
    relations = solve_all(A[kept][:, columns].T, _sides(A[rest][:, columns])) or []
    dropped, contradictions = [], []
    rows, ends = IntegerRows.of(A), rationals(b)
    for j, relation in zip(rest.tolist(), relations, strict=False):
        weights = {j: flint.fmpq(1)}
        weights |= {int(kept[k]): -weight for k, weight in enumerate(relation) if weight}
        left: dict[int, Rational] = {}
        for i, weight in weights.items():
            share = shifted(weight, -rows.shift[i])
            for column, value in zip(rows.columns[i], rows.entries[i], strict=True):
                left[column] = left.get(column, 0) + share * value
        if any(left.values()):
            continue  # it depends on them modulo the prime alone
        dropped.append(j)
        size = sum((weight * ends[i] for i, weight in weights.items()), flint.fmpq(0))
        if size:
            *shares, off = fractions([*weights.values(), size])
            contradictions.append(Contradiction(dict(zip(weights, shares, strict=True)), off))
    return Dependence(np.setdiff1d(np.arange(A.shape[0]), dropped), contradictions)


def _sides(A: Any) -> list[list[Rational]]:
    """The rows of a sparse matrix of doubles as rationals."""
    rows, zero = scipy.sparse.csr_array(A), flint.fmpq(0)
    sides = [[zero] * rows.shape[1] for _ in range(rows.shape[0])]
    for side, start, end in zip(sides, rows.indptr[:-1], rows.indptr[1:], strict=True):
        entries = rationals(rows.data[start:end])
        for column, value in zip(rows.indices[start:end].tolist(), entries, strict=True):
            side[column] = value
    return sides
